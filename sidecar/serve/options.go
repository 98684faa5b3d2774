// Package serve is the server of weir serve, built from its configuration: calls, decisions, the admin listener, the
// fleet's store, and notifications. Start runs a server in this process.
package serve

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// Options configure a server in addition to its configuration file. The zero Options use the system's network and
// environment, and log nothing.
type Options struct {
	Log     io.Writer                                 // receives one line per Write and must not block; nil means no log
	TextLog bool                                      // text lines instead of JSON
	Env     func(name string) (value string, ok bool) // nil means the environment of the process
	Version string                                    // of the program, for the status page and the log

	Listen func(address string) (net.Listener, error)                           // nil means the system's network
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // connects to upstreams; nil means the system's network
	Roots  *x509.CertPool                                                       // roots for upstreams' certificates; nil means the system's
	Store  func(fleet.Store) fleet.Store                                        // wraps the store; may be nil
	Shared fleet.Store                                                          // replaces the store if the file names none; may be nil. The server closes it
	Nested bool                                                                 // calls reach upstreams through another weir, which may refuse them
	Events weir.Events                                                          // events of calls, in addition to log and metrics

	Tell func(s State, text string) // receives the state, always from one goroutine, with a text for people; may be nil
	Beat time.Duration              // how often Tell receives Alive; 0 means never
}

// A State is what a server reports to its service manager.
type State uint8

const (
	Unknown   State = iota
	Ready           // it serves with its current configuration
	Reloading       // it reloads its file; Ready follows even if the reload fails
	Stopping        // it is about to stop
	Alive           // its main loop runs
)

func (o *Options) logHandler(h *slog.HandlerOptions) slog.Handler {
	if o.TextLog {
		return slog.NewTextHandler(o.Log, h)
	}
	return slog.NewJSONHandler(o.Log, h)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Tell == nil {
		o.Tell = func(State, string) {}
	}
	if o.Listen == nil {
		o.Listen = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	return o
}

// share uses Shared if the file names no store. Otherwise it closes Shared.
func (o *Options) share(f *config.File) {
	switch {
	case o.Shared == nil:
	case f.Store == nil:
		f.Store = &config.Store{Memory: true, Guard: 50 * time.Millisecond, Timeout: time.Second}
	default:
		_ = o.Shared.Close()
		o.Shared = nil
	}
}
