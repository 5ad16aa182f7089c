// Proves the CORS headers with a real browser: a page of the allowed origin may use the API, another page may not.
// The rules themselves are tested in crates/adapters-http/tests/http/cors.rs.
//
//     node origins.js CHROMIUM URL TOKEN ALLOWED-ORIGIN

import assert from 'node:assert/strict';
import { launch } from './browser.js';

const [executablePath, url, token, allowed] = process.argv.slice(2);
const BODY = JSON.stringify({ name: 'Rex', categoryId: 1 });
const HEADERS = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'origins' };

const browser = await launch(executablePath);
try {
  const shop = await pageOf(allowed);
  const anonymous = await send(shop, 'GET', {});
  assert.deepEqual([anonymous.status, anonymous.body.code], [401, 'missing_api_key']);
  assert.match(anonymous.headers['www-authenticate'], /^Bearer /);
  const created = await send(shop, 'POST', HEADERS, BODY);
  assert.equal(created.status, 201);
  assert.equal(created.headers.location, `pets/${created.body.id}`);
  console.log(`${allowed}: read a 401, created a pet`);

  const foreign = await pageOf(`${allowed}.example`);
  assert.equal(await send(foreign, 'GET', {}), null);
  assert.equal(await send(foreign, 'POST', { ...HEADERS, 'Idempotency-Key': 'foreign' }, BODY), null);
  const { body: pets } = await send(shop, 'GET', { Authorization: HEADERS.Authorization });
  assert.ok(!pets.some(({ id }) => id > created.body.id), 'a foreign page created a pet');
  console.log(`${allowed}.example: refused`);
} finally {
  await browser.close();
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

/** The response as the page sees it, or null if the browser withholds it. */
function send(page, method, headers, body) {
  return page.evaluate(async ([url, options]) => {
    try {
      const response = await fetch(url, options);
      return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.json() };
    } catch {
      return null;
    }
  }, [`${url}/v1/pets`, { method, headers, body }]);
}
