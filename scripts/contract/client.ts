// Lists, adds, pages and fetches by openapi-fetch, with the types that openapi-typescript generated.

import createClient from "openapi-fetch";
import type { components, paths } from "./interface.js";

type Pet = components["schemas"]["Pet"];

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: `${url}/v1`, headers: { Authorization: `Bearer ${token}` } });

function check(holds: unknown, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what));
}

const added: Pet[] = [];
for (let number = 0; number < 5; number++) {
  const body = { name: `Tom ${number} 🐈`, categoryId: number, status: "pending" as const };
  const header = { "Idempotency-Key": `typescript-${number}` };
  const { data, error, response } = await client.POST("/pets", { body, params: { header } });
  check(data && response.status === 201, error);
  const again = await client.POST("/pets", { body, params: { header } });
  check(again.data?.id === data.id && again.response.headers.get("Idempotency-Replayed") === "true", again.error);
  added.push(data);
}

const seen: Pet[] = [];
for (let cursor: string | undefined; ; ) {
  const query = { limit: 2, status: "pending" as const, cursor };
  const { data, error, response } = await client.GET("/pets", { params: { query } });
  check(data && data.length <= 2, error);
  seen.push(...data);
  cursor = /cursor=([^&>]+)/.exec(response.headers.get("Link") ?? "")?.[1];
  if (!cursor) break;
}
const ids = new Set(added.map((pet) => pet.id));
check(JSON.stringify(seen.filter((pet) => ids.has(pet.id))) === JSON.stringify(added), seen);

const found = await client.GET("/pets/{petId}", { params: { path: { petId: added[0].id } } });
check(found.data?.name === added[0].name && found.response.headers.has("Sunset"), found.error);
const missing = await client.GET("/pets/{petId}", { params: { path: { petId: 999_999_999 } } });
check(missing.error?.code === "pet_not_found", missing.data);
