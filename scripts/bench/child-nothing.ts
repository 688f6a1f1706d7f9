/** A process that does nothing: what starting Bun costs. */
export {};
