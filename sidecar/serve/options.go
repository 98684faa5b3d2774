// Package serve is the server of weir serve, wired from its configuration: calls, decisions for
// others, the admin listener, the store that a fleet shares, and who is told what. Start runs one
// in this process.
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

// Options are what a server lives with besides its file. The zero Options are the system's
// network and environment, and no log.
type Options struct {
	Log     io.Writer                                 // takes a line at a time, and must not block; nil for none
	TextLog bool                                      // lines are text for people, instead of JSON
	Env     func(name string) (value string, ok bool) // nil for that of the process
	Version string                                    // of the program, which the status and the log name

	Listen func(address string) (net.Listener, error)                           // nil for the system's network
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // to upstreams; nil for the system's network
	Roots  *x509.CertPool                                                       // that sign upstreams' certificates; nil for the system's
	Store  func(fleet.Store) fleet.Store                                        // what stands before the store; nil for nothing
	Shared fleet.Store                                                          // of a file that names no store; nil for none. The server closes it
	Events weir.Events                                                          // hear of calls, besides log and metrics

	Tell func(s State, text string) // hears how the server is, from one goroutine; text is for people. nil for nobody
	Beat time.Duration              // how often it hears Alive; 0 for never
}

// A State is what a server tells the program that manages it.
type State uint8

const (
	Unknown   State = iota
	Ready           // it serves, by the configuration that it has
	Reloading       // its file is read again; Ready follows, whether it was good or not
	Stopping        // it is about to end
	Alive           // it heeds what it is told
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

// share has a file that names no store use Shared, and drops Shared otherwise.
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
