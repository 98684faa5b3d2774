package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process was started for a measurement.
type process struct {
	name    string
	cmd     *exec.Cmd
	address string
	decides string // address for decisions
	grpc    string // address for Envoy's decisions
}

// ticks is the unit of times in /proc/PID/stat on Linux.
const ticks = 10 * time.Millisecond

// cpu returns the CPU time of the process and its children.
func (p *process) cpu() (used time.Duration) {
	if p == nil {
		return 0
	}
	pid := strconv.Itoa(p.cmd.Process.Pid)
	children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	for _, pid := range append(strings.Fields(string(children)), pid) {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		used += time.Duration(user+system) * ticks
	}
	return used
}

// A stage has all processes of a measurement. Processes that this machine lacks are nil.
type stage struct {
	dir                            string
	upstream, bare, spared, gather *process
	answer, grpc, nginx, redis     *process
	weirs                          []*process
	sharing                        []*process // sidecars with limits in Redis
}

const configuration = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
decide: {listen: 127.0.0.1:0, grpc: 127.0.0.1:0, rules: rules.yaml, store_timeout: 10s}
upstreams:
  api:
    url: http://%[1]s
    keys: {tenant: "header:X-Tenant"}
    limits:
      all: {rate: 1000000/s, burst: 1000000}
  tight:
    url: http://%[1]s
    retry: {attempts: 1}
    limits:
      all: {rate: 1/h, burst: 1}
  chat:
    preset: openai
    url: http://%[1]s
    limits:
      rpm: {rate: 1000000/s, burst: 1000000, scope: pool}
      tpm: {rate: 1000000000/s, burst: 1000000000, unit: tokens, scope: pool}
  signed:
    url: http://%[1]s
    keys: {tenant: "header:X-Tenant"}
    limits:
      all: {rate: 1000000/s, burst: 1000000}
    aws: {service: s3, region: eu-west-1}
`

// begin starts everything.
func begin(weirs []string) (s *stage, err error) {
	s = &stage{}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "weir-bench"); err != nil {
		return s, err
	}
	if err = s.others(); err != nil {
		return s, err
	}
	if err = os.WriteFile(filepath.Join(s.dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		return s, err
	}
	config := filepath.Join(s.dir, "weir.yaml")
	if err = os.WriteFile(config, fmt.Appendf(nil, configuration, s.upstream.address), 0o600); err != nil {
		return s, err
	}
	sharing := filepath.Join(s.dir, "sharing.yaml")
	if s.redis != nil {
		if err = os.WriteFile(sharing, fmt.Appendf(nil, configuration+"store: {redis: \"redis://%[2]s\"}\n", s.upstream.address, s.redis.address), 0o600); err != nil {
			return s, err
		}
	}
	for _, arg := range weirs {
		name, path := named(arg)
		p, err := s.weir(name, path, config)
		if err != nil {
			return s, err
		}
		s.weirs = append(s.weirs, p)
		if s.redis == nil {
			continue
		}
		if p, err = s.weir(name, path, sharing); err != nil {
			return s, err
		}
		s.sharing = append(s.sharing, p)
	}
	return s, nil
}

// others starts all processes except weir.
func (s *stage) others() (err error) {
	if s.upstream, err = s.role("upstream"); err != nil {
		return err
	}
	for role, p := range map[string]**process{"bare": &s.bare, "spared": &s.spared, "gather": &s.gather, "answer": &s.answer, "grpc": &s.grpc} {
		if *p, err = s.role(role, "-to", s.upstream.address); err != nil {
			return err
		}
	}
	if err = s.startNginx(); err != nil {
		return err
	}
	return s.startRedis()
}

func (s *stage) end() {
	others := []*process{s.upstream, s.bare, s.spared, s.gather, s.answer, s.grpc, s.nginx, s.redis}
	for _, p := range slices.Concat(s.sharing, s.weirs, others) {
		if p != nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // nginx stops its workers
			_ = p.cmd.Wait()
		}
	}
	_ = os.RemoveAll(s.dir)
}

// role starts this program in a role.
func (s *stage) role(role string, more ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: role, cmd: exec.Command(self, append([]string{"-role", role}, more...)...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = p.cmd.Start(); err != nil {
		return nil, err
	}
	p.address, err = bufio.NewReader(out).ReadString('\n')
	p.address = strings.TrimSpace(p.address)
	return p, err
}

// weir starts weir serve, whose log goes to a file as a user's does.
func (s *stage) weir(name, path, config string) (*process, error) {
	at := filepath.Join(s.dir, fmt.Sprintf("log%d", len(s.weirs)+len(s.sharing)))
	file, err := os.Create(at)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{name: name, cmd: exec.Command(path, "serve", "-config", config)}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=AKBENCH", "AWS_SECRET_ACCESS_KEY=secret")
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		b, _ := os.ReadFile(at)
		for line := range strings.SplitSeq(string(b), "\n") {
			var said struct {
				Msg, Listen, Decide string
				GRPC                string `json:"decide.grpc"`
			}
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
				p.address, p.decides, p.grpc = said.Listen, said.Decide, said.GRPC
				return p, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	b, _ := os.ReadFile(at)
	return nil, fmt.Errorf("%s does not serve: %s", path, b)
}
