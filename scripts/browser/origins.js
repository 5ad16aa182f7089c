// Uses the interface from pages of other origins: one that the service allows, one that it does not.
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
  assert.equal(anonymous.status, 401);
  assert.equal(anonymous.body.code, 'missing_api_key');
  assert.match(anonymous.headers['www-authenticate'], /^Bearer /);

  const added = await send(shop, 'POST', HEADERS, BODY);
  assert.equal(added.status, 201);
  assert.equal(added.headers.location, `pets/${added.body.id}`);
  const again = await send(shop, 'POST', HEADERS, BODY);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.deepEqual(again.body, added.body);
  console.log(`${allowed}: a 401 read, an animal added, and again`);

  const stranger = await pageOf(`${allowed}.example`);
  assert.equal(await send(stranger, 'GET', {}), null);
  assert.equal(await send(stranger, 'POST', { ...HEADERS, 'Idempotency-Key': 'stranger' }, BODY), null);
  const { body: animals } = await send(shop, 'GET', { Authorization: HEADERS.Authorization });
  assert.ok(!animals.some(({ id }) => id > added.body.id), 'a stranger added an animal');
  console.log(`${allowed}.example: refused`);
} finally {
  await browser.close();
}

/** An empty page, for which no other host is asked. */
async function pageOf(origin) {
  const page = await browser.newPage();
  await page.route(`${origin}/`, (route) => route.fulfill({ contentType: 'text/html', body: '<!DOCTYPE html>' }));
  await page.goto(`${origin}/`);
  // As long as there is a route, preflights are answered by Playwright.
  await page.unroute(`${origin}/`);
  return page;
}

/** What the page gets to see of the answer; null where the browser keeps it from the page. */
function send(page, method, headers, body) {
  return page.evaluate(async ([url, options]) => {
    try {
      const answer = await fetch(url, options);
      return { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.json() };
    } catch {
      return null;
    }
  }, [`${url}/v1/pets`, { method, headers, body }]);
}
