/** Collects garbage until `done` holds, giving finalizers their turns; false when it never does. */
export async function collectUntil(done: () => boolean, turns = 200): Promise<boolean> {
  for (let turn = 0; turn < turns; turn++) {
    if (done()) return true;
    Bun.gc(true);
    await Bun.sleep(1);
  }
  return done();
}
