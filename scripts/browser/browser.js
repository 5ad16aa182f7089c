import { chromium } from 'playwright-core';

const SWITCHES = [
  // As root, Chromium may have no sandbox.
  '--no-sandbox',
  '--no-first-run',
  '--no-proxy-server',
  '--disable-quic',
  // No requests to the vendor of the browser.
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page of another host may send requests to the service on this machine.
  '--disable-features=LocalNetworkAccessChecks',
];

export const launch = (executablePath) => chromium.launch({ executablePath, args: SWITCHES });
