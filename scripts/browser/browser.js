import { chromium } from 'playwright-core';

const SWITCHES = [
  // Chromium has no sandbox as root.
  '--no-sandbox',
  '--no-first-run',
  '--no-proxy-server',
  '--disable-quic',
  // No requests to the maker of the browser.
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Lets a page of a fictitious host send requests to this machine.
  '--disable-features=LocalNetworkAccessChecks',
];

export const launch = (executablePath) => chromium.launch({ executablePath, args: SWITCHES });
