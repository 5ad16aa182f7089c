// Uses the client that openapi-generator made for TypeScript.
import { BASE_PATH, Configuration, PetsApi, ResponseError } from "./client";

declare const process: { argv: string[] };

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

async function main(): Promise<void> {
  const [basePath, accessToken, generatedBasePath] = process.argv.slice(2);
  check(BASE_PATH === generatedBasePath, BASE_PATH);
  const pets = new PetsApi(new Configuration({ basePath, accessToken }));

  const exact = Number.MAX_SAFE_INTEGER;
  const created = await pets.createPet({ newPet: { name: "Rex", categoryId: exact } });
  check(created.categoryId === exact, "an integer of 53 bits is exact");
  check((await pets.listPets({ limit: 100 })).some((pet) => pet.id === created.id), "the list");
  const response = await pets.createPetRaw({ newPet: { name: "Tom", categoryId: 1 } });
  const names = [...response.raw.headers.keys()];
  check(names.includes("location"), `names of fields arrive in lower case: ${names}`);

  // The service stores this integer exactly; JavaScript reads another one.
  const headers = { Authorization: `Bearer ${accessToken}`, "Content-Type": "application/json" };
  const body = '{"name":"Kim","categoryId":9007199254740993}';
  const sent = await fetch(`${basePath}/pets`, { method: "POST", headers, body });
  check((await sent.text()).includes("9007199254740993"), "the service is exact");
  const last = (await pets.listPets({ limit: 100 })).find((pet) => pet.name === "Kim");
  check(last?.categoryId === 9007199254740992, `JavaScript reads ${last?.categoryId}`);

  const missing = await pets.getPet({ petId: exact }).catch((error) => error);
  check(missing instanceof ResponseError && missing.response.status === 404, String(missing));
}

main();
