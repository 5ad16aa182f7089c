import { chromium } from 'playwright-core';

const SWITCHES = [
  // As root there may be no sandbox.
  '--no-sandbox',
  '--no-first-run',
  '--no-proxy-server',
  '--disable-quic',
  // Nothing of what a browser asks its maker.
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page of a made-up host may ask the service on this machine.
  '--disable-features=LocalNetworkAccessChecks',
];

export const launch = (executablePath) => chromium.launch({ executablePath, args: SWITCHES });
