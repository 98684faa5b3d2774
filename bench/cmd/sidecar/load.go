package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bench/wire"
)

// A story is what a connection repeats: a request, or an acquire and its report.
type story func(c *client) error

// A client is one connection.
type client struct {
	*wire.Client
	took time.Duration // measured by the story; 0 if it is the duration of the complete story
}

// get requests a path with the headers of an SDK's client.
func get(path, status string) story {
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer 0123456789abcdef\r\nX-Tenant: acme\r\n\r\n")
	return func(c *client) error { return c.Ask(request, status) }
}

// pair acquires a permit and reports it.
func pair(c *client) error {
	if err := c.Ask(post("/v1/acquire", []byte(`{"upstream":"api","keys":{"tenant":"acme"},"wait":"2s"}`)), "200"); err != nil {
		return err
	}
	_, rest, found := bytes.Cut(c.Body, []byte(`"permit":"`))
	id, _, end := bytes.Cut(rest, []byte(`"`))
	if !found || !end {
		return fmt.Errorf("no permit in %q", c.Body)
	}
	return c.Ask(post("/v1/report", fmt.Appendf(nil, `{"permit":"%s","outcome":"ok"}`, id)), "200")
}

func post(path string, body []byte) []byte {
	return wire.Request("POST", path, "application/json", "", body)
}

// A figure is the result of one measurement.
type figure struct {
	rate     float64 // stories per second
	cpu      float64 // us of the process in the middle per story; 0 without one
	p50, p99 float64 // us
}

func dial(address string) (*client, error) {
	c, err := wire.Dial(address)
	return &client{Client: c}, err
}

// once runs a story one time.
func once(address string, s story) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	return s(c)
}

// load runs a story on a number of connections for a time.
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
	tell() // warm up
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
