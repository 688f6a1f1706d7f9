/** Runs examples one after another, each named before what it prints: `bun run-child.ts FILE...` */
for (const file of process.argv.splice(2)) {
  console.log(`== ${file}`);
  await import(file);
}
