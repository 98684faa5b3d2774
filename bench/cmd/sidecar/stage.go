package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A process is one that was started for a measurement.
type process struct {
	name    string
	cmd     *exec.Cmd
	address string
	decides string // where weir decides
}

// ticks is how much one unit of /proc/PID/stat is, on every Linux that there is.
const ticks = 10 * time.Millisecond

// cpu is the processor time that the process has used.
func (p *process) cpu() time.Duration {
	if p == nil {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * ticks
}

// A stage is all the processes of a measurement.
type stage struct {
	dir                    string
	upstream, bare, spared *process
	answer                 *process
	weirs                  []*process
}

const configuration = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
decide: {listen: 127.0.0.1:0}
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
	if s.upstream, err = s.role("upstream"); err != nil {
		return s, err
	}
	if s.bare, err = s.role("bare", "-to", s.upstream.address); err != nil {
		return s, err
	}
	if s.spared, err = s.role("spared", "-to", s.upstream.address); err != nil {
		return s, err
	}
	if s.answer, err = s.role("answer"); err != nil {
		return s, err
	}
	config := filepath.Join(s.dir, "weir.yaml")
	if err = os.WriteFile(config, fmt.Appendf(nil, configuration, s.upstream.address), 0o600); err != nil {
		return s, err
	}
	for _, arg := range weirs {
		name, path := named(arg)
		p, err := s.weir(name, path, config)
		if err != nil {
			return s, err
		}
		s.weirs = append(s.weirs, p)
	}
	return s, nil
}

func (s *stage) end() {
	for _, p := range append([]*process{s.upstream, s.bare, s.spared, s.answer}, s.weirs...) {
		if p != nil {
			_ = p.cmd.Process.Kill()
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
	at := filepath.Join(s.dir, fmt.Sprintf("log%d", len(s.weirs)))
	file, err := os.Create(at)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{name: name, cmd: exec.Command(path, "serve", "-config", config)}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		b, _ := os.ReadFile(at)
		for line := range strings.SplitSeq(string(b), "\n") {
			var said struct{ Msg, Listen, Decide string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
				p.address, p.decides = said.Listen, said.Decide
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
