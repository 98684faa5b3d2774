package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Options are what a URL does not say, or should not. The zero Options are good.
type Options struct {
	Prefix string // begins every key, so that fleets can share a server; "" means "weir"

	Username string // over that of the URL
	Password string // over that of the URL; it is never shown

	// SentinelUsername and SentinelPassword are for the sentinels, which may have others.
	SentinelUsername string
	SentinelPassword string

	TLS     *tls.Config   // over that of the URL, for rediss:// only
	Timeout time.Duration // of one try to connect, which no caller waits for; 0 means 500ms
}

// Open makes a Store of a server, of what sentinels call the primary, or of a cluster. The URL is
//
//	redis://user:password@host:6379/0          one server, or any node of a cluster
//	rediss://...                               the same over TLS
//	redis://host:26379?master_set=name         sentinels, and what they call the primary
//	redis://host1:6379?addr=host2:6379         several addresses of sentinels or nodes
//
// It returns at once and connects in the background. The first call waits for that, until its context
// ends; later ones fail at once while there is no connection.
func Open(rawURL string, o Options) (*Store, error) {
	opt, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil && opt.TLSConfig == nil {
		return nil, errors.New("redis url: TLS settings need the scheme rediss://")
	}
	d := newDialer(o.timeout())
	o.apply(&opt, d)
	b := &opening{first: make(chan struct{}), dialer: d}
	ctx, cancel := context.WithCancel(context.Background())
	b.wg.Go(func() { b.run(ctx, opt) })
	c := newClient(b.client, sync.OnceFunc(func() { b.close(cancel) }), d)
	prefix := string(appendSafe(nil, cmp.Or(o.Prefix, "weir")))
	name := fmt.Sprintf("redis %s %q %d %s", strings.Join(slices.Sorted(slices.Values(opt.InitAddress)), ","), opt.Sentinel.MasterSet, opt.SelectDB, prefix)
	return &Store{client: c, prefix: prefix, name: name, calls: sync.Pool{New: func() any { return new(call) }},
		known: make(map[string]bool), listed: make(map[string]bool), adoptions: make(map[string]*adoption)}, nil
}

// parse reads a URL. Errors show nothing of it: it may hold a password anywhere.
func parse(rawURL string) (opt rueidis.ClientOption, err error) {
	const want = "want redis://user:password@host:port/database, rediss:// for TLS, ?master_set=name for sentinels"
	u, err := url.Parse(rawURL)
	if err != nil {
		return opt, errors.New("redis url: is invalid; " + want + "; encode special characters of the password as %XX")
	}
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
	default:
		return opt, fmt.Errorf("redis url: scheme %q; %s", u.Scheme, want)
	}
	if opt, err = rueidis.ParseURL(rawURL); err != nil {
		return opt, errors.New("redis url: the database or a setting is wrong; " + want)
	}
	return opt, nil
}

func (o *Options) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return 500 * time.Millisecond
}

// apply makes a client's settings those that a limiter needs.
func (o *Options) apply(opt *rueidis.ClientOption, d *dialer) {
	if o.Username != "" {
		opt.Username = o.Username
	}
	if o.Password != "" {
		opt.Password = o.Password
	}
	if o.TLS != nil {
		opt.TLSConfig = o.TLS
	}
	opt.ClientName = "weir"
	opt.DialCtxFn = d.dial
	opt.Dialer.Timeout = o.timeout()
	opt.Dialer.KeepAlive = 2 * time.Second // a PING is sent as often to a server that says nothing
	opt.ConnWriteTimeout = mostAlone       // and may take so long
	opt.Dialer.KeepAliveConfig = asks      // where no PING is sent
	opt.DisableRetry = true                // who repeats an ask says so
	opt.DisableCache = true
	opt.DisableAutoPipelining = true // each call says how it goes: see call
	opt.PipelineMultiplex = -1
	opt.RingScaleEachConn = ringScale
	opt.ClusterOption.MaxMovedRedirections = 3
	if opt.Sentinel.MasterSet != "" {
		opt.Sentinel.Dialer, opt.Sentinel.TLSConfig, opt.Sentinel.ClientName = opt.Dialer, opt.TLSConfig, opt.ClientName
		opt.Sentinel.Username, opt.Sentinel.Password = o.SentinelUsername, o.SentinelPassword
		opt.Sentinel.TopologyRefreshInterval = time.Second
	}
}

// asks is how the kernel finds that nobody is there any more: within 3 seconds, as a PING does.
var asks = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2}

// An opening is a client that is made in the background, for as long as that takes.
type opening struct {
	made   atomic.Pointer[rueidis.Client]
	failed atomic.Pointer[error]
	once   sync.Once
	first  chan struct{} // closed when it was tried once
	dialer *dialer
	wg     sync.WaitGroup
}

func (b *opening) run(ctx context.Context, opt rueidis.ClientOption) {
	for begin := time.Now(); !b.try(opt); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauseAfter(time.Since(begin))):
		}
	}
}

func (b *opening) try(opt rueidis.ClientOption) bool {
	c, err := rueidis.NewClient(opt)
	if err == nil {
		b.made.Store(&c)
	} else {
		b.failed.Store(&err)
	}
	b.once.Do(func() { close(b.first) })
	return err == nil
}

// client is the client, once it was tried to make it.
func (b *opening) client(ctx context.Context) (rueidis.Client, error) {
	if c := b.made.Load(); c != nil {
		return *c, nil
	}
	select {
	case <-b.first:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := b.made.Load(); c != nil {
		return *c, nil
	}
	return nil, fmt.Errorf("not connected; retrying, last attempt: %w", *b.failed.Load())
}

func (b *opening) close(cancel context.CancelFunc) {
	cancel()
	b.dialer.cancel()
	b.wg.Wait()
	if c := b.made.Load(); c != nil {
		(*c).Close()
	}
	b.dialer.close()
}
