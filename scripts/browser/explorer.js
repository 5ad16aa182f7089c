// Uses the page at /docs as a person does: authorize, add an animal, see it in the list and by its id. Once as the
// service has it, once in a narrow window and behind a proxy that gives the service a path of its own.
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
  const complaints = watch(page, base);

  const look = async (name) => {
    if (pictures) await page.screenshot({ path: `${pictures}/${viewport.width}-${name}.png`, fullPage: true });
    assert.deepEqual(complaints, []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= viewport.width, `${name} is ${width} px wide in a window of ${viewport.width} px`);
  };

  await page.goto(`${base}/`);
  assert.equal(page.url(), `${base}/docs`);
  await page.getByText('Adds an animal').waitFor();
  await look('opened');

  await page.getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.dialog-ux');
  await dialog.getByRole('textbox').fill(token);
  await look('authorize');
  await dialog.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  const name = `Rex of ${viewport.width} px 🐕`;
  const create = await opened(page, 'Adds an animal');
  await create.locator('textarea').fill(JSON.stringify({ name, categoryId: 7, status: 'pending' }));
  const added = await executed(create, 201);
  assert.equal(added.name, name);
  await look('added');

  const list = await opened(page, 'Lists animals');
  await list.getByPlaceholder('limit').fill('100');
  const animals = await executed(list, 200);
  assert.deepEqual(animals.find(({ id }) => id === added.id), added);
  await look('listed');

  const get = await opened(page, 'Fetches an animal by its id');
  await get.getByPlaceholder('petId').fill(String(added.id));
  assert.deepEqual(await executed(get, 200), added);
  await look('fetched');

  await page.close();
  console.log(`${viewport.width} px: authorized, added, listed, fetched`);
}

/** What the page must not do: complain, break its own policy, ask another host for anything. */
function watch(page, base) {
  const complaints = [];
  page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`not caught: ${error}`));
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${base}/`) && !request.url().startsWith('data:')) complaints.push(`asked: ${request.url()}`);
  });
  return complaints;
}

/** The operation of this summary, with its form. */
async function opened(page, summary) {
  const operation = page.locator('.opblock').filter({ hasText: summary });
  await operation.locator('.opblock-summary-control').click();
  await operation.getByRole('button', { name: 'Execute' }).waitFor();
  return operation;
}

/** Sends the form and returns the body that the page shows. */
async function executed(operation, status) {
  await operation.getByRole('button', { name: 'Execute' }).click();
  const answer = operation.locator('.live-responses-table');
  await answer.waitFor();
  assert.equal(await answer.locator('.response-col_status').last().textContent(), String(status));
  return JSON.parse(await answer.locator('.highlight-code code').first().textContent());
}

/** Passes a request on, without the prefix. */
function forward(request, response) {
  const { method, headers } = request;
  assert.ok(request.url.startsWith(`${PREFIX}/`), request.url);
  const forwarded = send(url + request.url.slice(PREFIX.length), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  request.pipe(forwarded);
}
