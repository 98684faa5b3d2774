package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"
)

// A listener receives the ends of invocations from Lambda's Telemetry API. The Extensions API reports only their starts.
type listener struct {
	l    net.Listener
	http *http.Server
	done chan string // request IDs
}

// listen listens at an address that Lambda can reach from outside of the sandbox.
func listen(addr string) (*listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	t := &listener{l: l, done: make(chan string, 64)}
	t.http = &http.Server{Handler: t, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = t.http.Serve(l) }() // until close
	return t, nil
}

func (t *listener) port() int { return t.l.Addr().(*net.TCPAddr).Port }

func (t *listener) close() { _ = t.http.Close() }

// ServeHTTP receives Lambda's events.
func (t *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all []struct {
		Type   string `json:"type"`
		Record json.RawMessage
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, mostSaid))
	if err != nil || json.Unmarshal(body, &all) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, e := range all {
		var record struct {
			RequestID string `json:"requestId"`
		}
		if e.Type != "platform.runtimeDone" || json.Unmarshal(e.Record, &record) != nil {
			continue
		}
		select {
		case t.done <- record.RequestID:
		default: // nothing has read the channel for a long time
		}
	}
}
