// Uses the API explorer at /docs: authorizes, creates a pet, finds it in the list and gets it by its id. First in a
// wide window, then in a narrow one, behind a proxy that serves the service under a path prefix.
//
//     node explorer.js CHROMIUM URL TOKEN [FOLDER-FOR-SCREENSHOTS]

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import { launch } from './browser.js';

const [executablePath, url, token, screenshots] = process.argv.slice(2);
const PREFIX = '/shop';

const browser = await launch(executablePath);
const proxy = createServer(forward).listen(0, '127.0.0.1');
await once(proxy, 'listening');
try {
  await explore(url, { width: 1280, height: 900 });
  await explore(`http://127.0.0.1:${proxy.address().port}${PREFIX}`, { width: 400, height: 800 });
} finally {
  await browser.close();
  proxy.close();
}

async function explore(base, viewport) {
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(20_000);
  const problems = collectProblems(page, base);

  const check = async (name) => {
    if (screenshots) await page.screenshot({ path: `${screenshots}/${viewport.width}-${name}.png`, fullPage: true });
    assert.deepEqual(problems, []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= viewport.width, `${name} is ${width} px wide in a window of ${viewport.width} px`);
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
  const create = await open(page, 'createPet');
  await create.locator('textarea').fill(JSON.stringify({ name, categoryId: 7, status: 'pending' }));
  const created = await execute(create, 201);
  assert.equal(created.name, name);
  await check('created');

  const list = await open(page, 'listPets');
  await list.getByPlaceholder('limit').fill('100');
  const pets = await execute(list, 200);
  assert.deepEqual(pets.find(({ id }) => id === created.id), created);
  await check('listed');

  const get = await open(page, 'getPet');
  await get.getByPlaceholder('petId').fill(String(created.id));
  assert.deepEqual(await execute(get, 200), created);
  await check('got');

  await page.close();
  console.log(`${viewport.width} px: authorized, created, listed, got`);
}

/** Collects console messages, violations of the page's policy, and requests to other hosts: none may happen. */
function collectProblems(page, base) {
  const problems = [];
  page.on('console', (message) => problems.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`not caught: ${error}`));
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const local = request.url().startsWith(`${base}/`) || request.url().startsWith('data:');
    if (!local) problems.push(`requested: ${request.url()}`);
  });
  return problems;
}

function operation(page, id) {
  return page.locator(`#operations-pets-${id}`);
}

/** Opens an operation and returns it when its form is there. */
async function open(page, id) {
  const opened = operation(page, id);
  await opened.locator('.opblock-summary-control').click();
  await opened.getByRole('button', { name: 'Execute' }).waitFor();
  return opened;
}

/** Sends the form of an operation and returns the body that the page shows. */
async function execute(opened, status) {
  await opened.getByRole('button', { name: 'Execute' }).click();
  const response = opened.locator('.live-responses-table');
  await response.waitFor();
  assert.equal(await response.locator('.response-col_status').last().textContent(), String(status));
  return JSON.parse(await response.locator('.highlight-code code').first().textContent());
}

/** Forwards a request without the prefix. */
function forward(request, response) {
  const { method, headers } = request;
  assert.ok(request.url.startsWith(`${PREFIX}/`), request.url);
  const forwarded = send(url + request.url.slice(PREFIX.length), { method, headers }, (upstream) => {
    response.writeHead(upstream.statusCode, upstream.headers);
    upstream.pipe(response);
  });
  request.pipe(forwarded);
}
