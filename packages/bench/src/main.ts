// `npm run bench`. Says that there is nothing to measure yet, and fails, so that nobody takes silence for a result.
console.error("No benchmark is in this checkout yet.");
process.exitCode = 1;
