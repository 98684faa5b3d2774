package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const nginxConfiguration = `
daemon off;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx.log error;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 1000000000;
  upstream u { server %[2]s; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen %[3]s;
    location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; }
  }
}
`

// startNginx starts nginx as a plain proxy with persistent connections, if it is in the path.
func (s *stage) startNginx() error {
	path, err := exec.LookPath("nginx")
	if err != nil {
		fmt.Fprintln(os.Stderr, "nginx is not there; on Debian: apt-get install nginx")
		return nil
	}
	at, err := freeAddress()
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfiguration, s.dir, s.upstream.address, at), 0o600); err != nil {
		return err
	}
	s.nginx, err = third("nginx", at, exec.Command(path, "-p", s.dir, "-c", file, "-e", filepath.Join(s.dir, "nginx.log")))
	return err
}

// startRedis starts Redis without persistence, if it is in the path.
func (s *stage) startRedis() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		fmt.Fprintln(os.Stderr, "redis-server is not there; on Debian: apt-get install redis-server")
		return nil
	}
	at, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	s.redis, err = third("redis", at, exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir))
	return err
}

// third starts another program and waits until it listens.
func third(name, at string, cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: cmd, address: at}
	for range 100 {
		if c, err := net.Dial("tcp", at); err == nil {
			return p, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return p, fmt.Errorf("%s does not listen at %s", name, at)
}

// freeAddress returns a free address.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
