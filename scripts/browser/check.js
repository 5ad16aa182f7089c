// Uses the service with a browser, as a person and as web pages do:
//
//     node check.js CHROMIUM URL TOKEN ALLOWED-ORIGIN [FOLDER-FOR-PICTURES]

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import { chromium } from 'playwright-core';

const [executablePath, url, token, allowed, pictures] = process.argv.slice(2);
const PREFIX = '/shop';
// Chromium has no sandbox as root. It sends no requests to its maker, and a page of a fictitious host may send requests
// to this machine.
const args = [
  '--no-sandbox', '--no-first-run', '--no-proxy-server', '--disable-quic', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-features=LocalNetworkAccessChecks',
];

const browser = await chromium.launch({ executablePath, args });
const proxy = createServer(forward).listen(0, '127.0.0.1');
await once(proxy, 'listening');
try {
  await explore(url, { width: 1280, height: 900 });
  await explore(`http://127.0.0.1:${proxy.address().port}${PREFIX}`, { width: 400, height: 800 });
  await crossOrigins();
} finally {
  await browser.close();
  proxy.close();
}

/** Authorizes in the API explorer, creates a pet, lists it, and gets it. */
async function explore(base, viewport) {
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(20_000);
  const problems = [];
  page.on('console', (message) => problems.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`not caught: ${error}`));
  page.on('request', (request) => {
    const own = request.url().startsWith(`${base}/`) || request.url().startsWith('data:');
    if (!own) problems.push(`request to ${request.url()}`);
  });

  const check = async (step) => {
    if (pictures) await page.screenshot({ path: `${pictures}/${viewport.width}-${step}.png`, fullPage: true });
    assert.deepEqual(problems, []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= viewport.width, `${step} is ${width} px wide in a window of ${viewport.width} px`);
  };
  // Fills in the form of an operation, sends it, and returns the body that the page shows.
  const execute = async (id, status, fill) => {
    const block = page.locator(`.opblock[id$="-${id}"]`);
    await block.locator('.opblock-summary-control').click();
    await fill(block);
    await block.getByRole('button', { name: 'Execute' }).click();
    const response = block.locator('.live-responses-table');
    await response.waitFor();
    assert.equal(await response.locator('.response-col_status').last().textContent(), String(status));
    await check(id);
    return JSON.parse(await response.locator('.highlight-code code').first().textContent());
  };

  await page.goto(`${base}/`);
  assert.equal(page.url(), `${base}/docs`);
  await page.getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.dialog-ux');
  await dialog.getByRole('textbox').fill(token);
  await check('authorize');
  await dialog.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  const pet = { name: `Rex of ${viewport.width} px 🐕`, categoryId: 7, status: 'pending' };
  const created = await execute('createPet', 201, (form) => form.locator('textarea').fill(JSON.stringify(pet)));
  assert.equal(created.name, pet.name);
  const pets = await execute('listPets', 200, (form) => form.getByPlaceholder('limit').fill('100'));
  assert.deepEqual(pets.find(({ id }) => id === created.id), created);
  const found = await execute('getPet', 200, (form) => form.getByPlaceholder('petId').fill(String(created.id)));
  assert.deepEqual(found, created);
  await page.close();
  console.log(`${viewport.width} px: authorized, created, listed, fetched`);
}

/** Forwards a request without the prefix, as a proxy that adds a base path. */
function forward(request, response) {
  const { method, headers } = request;
  assert.ok(request.url.startsWith(`${PREFIX}/`), request.url);
  const forwarded = send(url + request.url.slice(PREFIX.length), { method, headers }, (received) => {
    response.writeHead(received.statusCode, received.headers);
    received.pipe(response);
  });
  request.pipe(forwarded);
}

/** A page of the allowed origin creates a pet; another page cannot. */
async function crossOrigins() {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'origins' };
  const create = { method: 'POST', headers, body: JSON.stringify({ name: 'Rex', categoryId: 1 }) };
  const shop = await pageOf(allowed);
  assert.deepEqual(await fetched(shop, {}), { status: 401, location: null });
  assert.deepEqual((await fetched(shop, create)).status, 201);
  const foreign = await pageOf(`${allowed}.example`);
  assert.equal(await fetched(foreign, {}), 'withheld');
  assert.equal(await fetched(foreign, { ...create, headers: { ...headers, 'Idempotency-Key': 'foreign' } }), 'withheld');
  console.log(`${allowed}: created a pet; ${allowed}.example: refused`);
}

/** An empty page of this origin, served without a request to its host. */
async function pageOf(origin) {
  const page = await browser.newPage();
  await page.route(`${origin}/`, (route) => route.fulfill({ contentType: 'text/html', body: '<!DOCTYPE html>' }));
  await page.goto(`${origin}/`);
  // While a route exists, Playwright itself responds to preflights.
  await page.unroute(`${origin}/`);
  return page;
}

/** What the page can read of the response, or `withheld`. */
function fetched(page, options) {
  return page.evaluate(
    ([target, request]) => fetch(target, request).then(
      (response) => ({ status: response.status, location: response.headers.get('location') }),
      () => 'withheld',
    ),
    [`${url}/v1/pets`, options],
  );
}
