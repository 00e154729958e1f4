// Node's runner waits for ever for the rest of a message that the end of a test's process cut off, as --test-force-exit
// does with those longer than a pipe holds. So they are written whole.
process.stdout._handle?.setBlocking?.(true);
