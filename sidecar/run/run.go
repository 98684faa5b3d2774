// Package run runs a command whose calls stay within the limits of upstreams. It implements weir run.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/seed1158cd35/weir/sidecar/forward"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// Options configure a run. Command and Env are required.
type Options struct {
	Command []string // program and arguments
	Config  string   // a configuration file; "" selects presets by host
	Presets []string // presets that take precedence for their hosts
	Through []string // hosts that are tunneled unread although they have an upstream
	Run     string   // name of the run; "" chooses a random one
	Budget  string   // what the run may use in 24 hours, such as "5 USD, 500 calls"; "" limits nothing more
	Quiet   bool     // no summary
	Verbose bool     // a summary even if nothing happened

	Env      []string // NAME=VALUE, for weir and the command
	In       io.Reader
	Out, Err io.Writer
	Version  string
}

// Exit statuses of a command that could not be started, as shells report them.
const (
	statusFailed        = 125 // weir itself failed
	statusNotExecutable = 126
	statusNotFound      = 127
)

// drainTimeout limits the calls in flight after the command has ended, such as calls of processes that it left running.
const drainTimeout = 2 * time.Second

// Run runs the command, and returns its exit status, or 128 plus the number of the signal that ended it. An error means
// that the command was not started.
func Run(ctx context.Context, o Options) (status int, err error) {
	if inherits(&o) {
		return replace(o)
	}
	r, err := begin(o)
	if err != nil {
		return statusFailed, err
	}
	defer r.end()
	status, err = r.command(ctx)
	r.stop()
	if err == nil && !o.Quiet {
		r.report()
	}
	return status, err
}

// A running is a run with its server for calls and the proxy in front of it.
type running struct {
	Options
	dir    string
	shared string // directory of the state that runs share
	server *serve.Running
	proxy  *forward.Proxy
	hosts  *hostTable
	tally  tally
	header string         // the header that contains the run's key; "" if no limit has the scope
	key    string         // value of the scope run; see nest
	nested bool           // another run is around this one
	counts forward.Counts // set when the run has stopped
	used   []string       // of the run's limits, set when the run has stopped
}

// begin starts everything that the command needs.
func begin(o Options) (_ *running, err error) {
	r := &running{Options: o}
	if err = r.name(); err != nil {
		return nil, err
	}
	if r.dir, err = makeDir(r.lookup); err != nil {
		return nil, fmt.Errorf("directory of the run: %w", err)
	}
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	if err = r.nest(); err != nil {
		return nil, err
	}
	if r.shared, err = sharedDir(filepath.Dir(r.dir), r.Config); err != nil {
		return nil, err
	}
	if r.Config != "" && len(r.Presets) > 0 {
		return nil, errors.New("--config and --preset cannot be combined: name the presets in the file")
	}
	if r.Config != "" && r.Budget != "" {
		return nil, errors.New("--config and --budget cannot be combined: write the budget into the file, as limits of callers with scope: run")
	}
	if r.Config == "" {
		if r.Config, err = writeConfig(r.dir, r.Presets, r.Budget); err != nil {
			return nil, err
		}
	}
	roots, err := rootsOf(r.lookup)
	if err != nil {
		return nil, err
	}
	dialer := &forward.Dialer{Proxies: proxiesOf(r.lookup), Roots: roots, Allowed: r.Through}
	ready := make(chan struct{})
	r.proxy, err = forward.Listen(forward.Options{
		Upstream: func(to *url.URL) http.Handler { <-ready; return r.upstream(to) },
		Named:    func(name string) http.Handler { <-ready; return r.named(name) },
		Dialer:   dialer,
	})
	if err != nil {
		return nil, err
	}
	dialer.Own = []net.Addr{r.proxy.Addr()}
	r.server, err = serve.Start(r.Config, serve.Options{
		Shared: r.share(), Env: r.settings, Version: r.Version, Dial: dialer.DialContext, Roots: roots, Events: r.tally.events(), Listen: r.listen,
		Nested: r.nested,
	})
	if err != nil {
		return nil, err
	}
	r.hosts, r.header = newHostTable(r.server.Hosts(), r.Through), r.server.CallerHeader(runScope)
	close(ready)
	if o.Run != "" && r.header == "" {
		return nil, errors.New("--run has no effect: add --budget, or limits of callers with scope: run to the file, and keys: {run: \"header:" + runHeader + "\"}")
	}
	return r, nil
}

// Addresses at which the server would listen. The first gets no connections, because the proxy passes calls on
// directly. The second is replaced by a socket in the directory of the run.
const (
	callAddress  = "127.0.0.1:1"
	adminAddress = "127.0.0.1:2"
)

func (r *running) listen(address string) (net.Listener, error) {
	switch address {
	case callAddress:
		return newIdleListener(r.proxy.Addr()), nil
	case adminAddress:
		return net.Listen("unix", filepath.Join(r.dir, adminSocket))
	}
	return net.Listen("tcp", address)
}

// settings returns the variables for the configuration.
func (r *running) settings(name string) (string, bool) {
	switch name {
	case "WEIR_LISTEN":
		return callAddress, true
	case "WEIR_ADMIN":
		return adminAddress, true
	}
	return r.lookup(name)
}

// lookup returns a variable of the environment. The last of several values counts, as it does for the command.
func (r *running) lookup(name string) (string, bool) {
	for i := len(r.Env) - 1; i >= 0; i-- {
		if key, value, _ := strings.Cut(r.Env[i], "="); key == name {
			return value, true
		}
	}
	return "", false
}

// upstream returns the handler of calls to a host, or nil if its connections are tunneled.
func (r *running) upstream(to *url.URL) http.Handler {
	name := r.hosts.find(to.Host)
	if name == "" {
		return nil
	}
	return r.forward(name, to)
}

// named returns the handler of calls to the base URL of an upstream.
func (r *running) named(name string) http.Handler {
	at := r.hosts.urls[name]
	if at == nil {
		return nil
	}
	return r.forward(name, at)
}

// forward returns the handler of calls to a host of an upstream. Each call is charged to this run, even if the command
// names another one.
func (r *running) forward(name string, to *url.URL) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		if r.header != "" {
			in.Header.Set(r.header, r.key)
		}
		r.server.Forward(name, to, w, in)
	})
}

// stop ends proxy and server. Calls in flight have drainTimeout.
func (r *running) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if r.proxy != nil {
		r.proxy.Shutdown(ctx)
		r.counts = r.proxy.Counts()
	}
	if r.server != nil {
		r.used = used(r.server.CallerLimits(runScope, r.key))
		_ = r.server.Close()
	}
	r.proxy, r.server = nil, nil
}

// end calls stop, and removes the files of the run.
func (r *running) end() {
	r.stop()
	_ = os.RemoveAll(r.dir)
}

// proxiesOf returns the user's own proxies, through which weir connects.
func proxiesOf(env func(string) (string, bool)) httpproxy.Config {
	get := func(names ...string) string {
		for _, name := range names {
			if v, ok := env(name); ok && v != "" {
				return v
			}
		}
		return ""
	}
	return httpproxy.Config{
		HTTPProxy:  get("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
		HTTPSProxy: get("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
		NoProxy:    get("no_proxy", "NO_PROXY"),
	}
}
