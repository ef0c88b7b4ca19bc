// Sends connections to hosts of the test to its port on this machine, as port 443 would.
const net = require("node:net");

const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function connectAtPort(...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (options && String(options.host).endsWith(".localhost")) Object.assign(options, { host: "127.0.0.1", port: Number(process.env.HOSTS_PORT) });
  return connect.apply(this, args);
};
