package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A story is what a connection asks again and again: a request, or an acquire and its report.
type story func(c *client) error

// A client is one connection, which is used with as little work as can be.
type client struct {
	net.Conn
	in   *bufio.Reader
	body []byte        // of the last answer
	took time.Duration // by the story itself; 0 if it is as long as the whole of it
}

// ask sends a request and reads the answer, whose status must be the one that is wanted.
func (c *client) ask(request []byte, status string) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 || string(line[9:12]) != status {
		return fmt.Errorf("answer %q, want status %s", line, status)
	}
	length := -1
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("an answer without a length")
	}
	c.body = slices.Grow(c.body[:0], length)[:length]
	_, err = io.ReadFull(c.in, c.body)
	return err
}

// get asks for a path with the headers that a client of some SDK sends.
func get(path, status string) story {
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer 0123456789abcdef\r\nX-Tenant: acme\r\n\r\n")
	return func(c *client) error { return c.ask(request, status) }
}

// pair acquires a permit and reports it.
func pair(c *client) error {
	if err := c.ask(post("/v1/acquire", []byte(`{"upstream":"api","keys":{"tenant":"acme"},"wait":"2s"}`)), "200"); err != nil {
		return err
	}
	_, rest, found := bytes.Cut(c.body, []byte(`"permit":"`))
	id, _, end := bytes.Cut(rest, []byte(`"`))
	if !found || !end {
		return fmt.Errorf("no permit in %q", c.body)
	}
	return c.ask(post("/v1/report", fmt.Appendf(nil, `{"permit":"%s","outcome":"ok"}`, id)), "200")
}

func post(path string, body []byte) []byte { return with("POST", path, "application/json", "", body) }

// with is a request with a body.
func with(method, path, kind, more string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", method, path, kind, more, len(body), body)
}

// A figure is what one measurement brought.
type figure struct {
	rate     float64 // stories a second
	cpu      float64 // of the process in the middle, us each; 0 if there is none
	p50, p99 float64 // us
}

func dial(address string) (*client, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{Conn: c, in: bufio.NewReaderSize(c, 8<<10)}, nil
}

// once tells a story one time.
func once(address string, s story) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	return s(c)
}

// load tells a story over so many connections for so long.
func load(address string, s story, connections int, each time.Duration, p *process) (f figure, err error) {
	clients := make([]*client, connections)
	for i := range clients {
		if clients[i], err = dial(address); err != nil {
			return f, err
		}
		defer clients[i].Close()
	}
	took, failed := make([][]int32, connections), make([]error, connections)
	var stop atomic.Bool
	tell := func() {
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() {
				for !stop.Load() && failed[i] == nil {
					begun := time.Now()
					c.took = 0
					failed[i] = s(c)
					took[i] = append(took[i], int32(cmp.Or(c.took, time.Since(begun))/100))
				}
			})
		}
		all.Wait()
	}
	time.AfterFunc(each/8, func() { stop.Store(true) })
	tell() // warm
	for i := range took {
		took[i] = took[i][:0]
	}
	stop.Store(false)
	before, begun := p.cpu(), time.Now()
	time.AfterFunc(each, func() { stop.Store(true) })
	tell()
	wall, used := time.Since(begun), p.cpu()-before
	if err := errors.Join(failed...); err != nil {
		return f, err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	n := float64(len(all))
	return figure{n / wall.Seconds(), used.Seconds() * 1e6 / n, float64(all[len(all)/2]) / 10, float64(all[len(all)*99/100]) / 10}, nil
}
