// Preloaded into a Node child where the kernel cannot tie its life to ours (no setpriv): it ends
// itself when its parent has changed, which means ours has died. process.exit and not SIGKILL, so
// that what the child started is cleaned up by its own exit handlers.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) process.exit(1);
}, 250).unref();
