// Creates, lists and gets pets with openapi-fetch and the types that openapi-typescript generated.

import createClient from "openapi-fetch";
import type { components, paths } from "./interface.js";

type Pet = components["schemas"]["Pet"];

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: `${url}/v1`, headers: { Authorization: `Bearer ${token}` } });

function check(condition: unknown, detail: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(detail));
}

const created: Pet[] = [];
for (let number = 0; number < 5; number++) {
  const body = { name: `Tom ${number} 🐈`, categoryId: number, status: "pending" as const };
  const header = { "Idempotency-Key": `typescript-${number}` };
  const { data, error, response } = await client.POST("/pets", { body, params: { header } });
  check(data && response.status === 201, error);
  const replay = await client.POST("/pets", { body, params: { header } });
  check(replay.data?.id === data.id && replay.response.headers.get("Idempotency-Replayed") === "true", replay.error);
  created.push(data);
}

const listed: Pet[] = [];
for (let cursor: string | undefined; ; ) {
  const query = { limit: 2, status: "pending" as const, cursor };
  const { data, error, response } = await client.GET("/pets", { params: { query } });
  check(data && data.length <= 2, error);
  listed.push(...data);
  cursor = /cursor=([^&>]+)/.exec(response.headers.get("Link") ?? "")?.[1];
  if (!cursor) break;
}
const ids = new Set(created.map((pet) => pet.id));
check(JSON.stringify(listed.filter((pet) => ids.has(pet.id))) === JSON.stringify(created), listed);

const found = await client.GET("/pets/{petId}", { params: { path: { petId: created[0].id } } });
check(found.data?.name === created[0].name && found.response.headers.has("Sunset"), found.error);
const missing = await client.GET("/pets/{petId}", { params: { path: { petId: 999_999_999 } } });
check(missing.error?.code === "pet_not_found", missing.data);
