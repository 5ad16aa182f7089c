// Uses the API explorer as a person does: authorize, create a pet, list it, fetch it by its id. Once in a wide window,
// once in a narrow one behind a proxy that adds a base path.
//
//     node explorer.js CHROMIUM URL TOKEN [FOLDER-FOR-PICTURES]

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import { launch } from './browser.js';

const [executablePath, url, token, pictures] = process.argv.slice(2);
const PREFIX = '/shop';

const browser = await launch(executablePath);
const proxy = createServer(forward).listen(0, '127.0.0.1');
await once(proxy, 'listening');
try {
  await use(url, { width: 1280, height: 900 });
  await use(`http://127.0.0.1:${proxy.address().port}${PREFIX}`, { width: 400, height: 800 });
} finally {
  await browser.close();
  proxy.close();
}

async function use(base, viewport) {
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(20_000);
  const problems = watch(page, base);

  const check = async (step) => {
    if (pictures) await page.screenshot({ path: `${pictures}/${viewport.width}-${step}.png`, fullPage: true });
    assert.deepEqual(problems, []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= viewport.width, `${step} is ${width} px wide in a window of ${viewport.width} px`);
  };

  await page.goto(`${base}/`);
  assert.equal(page.url(), `${base}/docs`);
  await operation(page, 'createPet').waitFor();
  await check('opened');

  await page.getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.dialog-ux');
  await dialog.getByRole('textbox').fill(token);
  await check('authorize');
  await dialog.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  const name = `Rex of ${viewport.width} px 🐕`;
  const create = await opened(page, 'createPet');
  await create.locator('textarea').fill(JSON.stringify({ name, categoryId: 7, status: 'pending' }));
  const created = await executed(create, 201);
  assert.equal(created.name, name);
  await check('created');

  const list = await opened(page, 'listPets');
  await list.getByPlaceholder('limit').fill('100');
  const pets = await executed(list, 200);
  assert.deepEqual(pets.find(({ id }) => id === created.id), created);
  await check('listed');

  const get = await opened(page, 'getPet');
  await get.getByPlaceholder('petId').fill(String(created.id));
  assert.deepEqual(await executed(get, 200), created);
  await check('fetched');

  await page.close();
  console.log(`${viewport.width} px: authorized, created, listed, fetched`);
}

/** Collects messages on the console, violations of the page's policy, and requests to other hosts. */
function watch(page, base) {
  const problems = [];
  page.on('console', (message) => problems.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`not caught: ${error}`));
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const own = request.url().startsWith(`${base}/`) || request.url().startsWith('data:');
    if (!own) problems.push(`request to ${request.url()}`);
  });
  return problems;
}

/** The block of an operation, by its id in the OpenAPI document. */
function operation(page, id) {
  return page.locator(`.opblock[id$="-${id}"]`);
}

/** The block of an operation, with its form. */
async function opened(page, id) {
  const block = operation(page, id);
  await block.locator('.opblock-summary-control').click();
  await block.getByRole('button', { name: 'Execute' }).waitFor();
  return block;
}

/** Sends the form and returns the body that the page shows. */
async function executed(block, status) {
  await block.getByRole('button', { name: 'Execute' }).click();
  const response = block.locator('.live-responses-table');
  await response.waitFor();
  assert.equal(await response.locator('.response-col_status').last().textContent(), String(status));
  return JSON.parse(await response.locator('.highlight-code code').first().textContent());
}

/** Forwards a request without the prefix. */
function forward(request, response) {
  const { method, headers } = request;
  assert.ok(request.url.startsWith(`${PREFIX}/`), request.url);
  const forwarded = send(url + request.url.slice(PREFIX.length), { method, headers }, (received) => {
    response.writeHead(received.statusCode, received.headers);
    received.pipe(response);
  });
  request.pipe(forwarded);
}
