#!/bin/sh
# Makes users for NATS and an access token, once, and leaves them in /auth.
set -eu
if [ ! -f /auth/natscope.conf ]; then
  natscope auth --out /auth >/auth/natscope.conf.new
  mv /auth/natscope.conf.new /auth/natscope.conf
fi
if [ ! -f /auth/tokens ]; then
  token=$(natscope token admin --role debug --file /auth/tokens)
  echo "Open http://127.0.0.1:9230/t/$token/"
fi
chown -R 10001 /auth
chmod 0644 /auth/natscope.conf
