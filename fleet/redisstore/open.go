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

// Options supplement the URL of Open. The zero Options are usable.
type Options struct {
	Prefix string // begins every key, so that fleets can share a server; "" means "weir"

	Username string // replaces the URL's
	Password string // replaces the URL's; never shown

	// SentinelUsername and SentinelPassword are the credentials for the sentinels, which may differ.
	SentinelUsername string
	SentinelPassword string

	TLS     *tls.Config   // replaces the URL's, for rediss:// only
	Timeout time.Duration // of one attempt to connect, for which no caller waits; 0 means 500ms
}

// Open returns a Store on a server, on the primary that sentinels name, or on a cluster. The URL is
//
//	redis://user:password@host:6379/0          one server, or any node of a cluster
//	rediss://...                               the same over TLS
//	redis://host:26379?master_set=name         sentinels and the name of the primary
//	redis://host1:6379?addr=host2:6379         several addresses of sentinels or nodes
//
// Open returns immediately and connects in the background. The first call waits for the first attempt, until its
// context ends. Later calls fail immediately while there is no connection.
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

// parse parses a URL. Its errors do not quote the URL, which may contain a password anywhere.
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

// apply sets the client's options that a limiter needs.
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
	opt.Dialer.KeepAlive = 2 * time.Second // interval of PINGs to a silent server
	opt.ConnWriteTimeout = mostAlone       // timeout of a PING
	opt.Dialer.KeepAliveConfig = asks      // for connections without PINGs
	opt.DisableRetry = true                // the caller of Take decides about repeats
	opt.DisableCache = true
	opt.DisableAutoPipelining = true // each call chooses its connection: see sending.by
	opt.PipelineMultiplex = -1
	opt.RingScaleEachConn = ringScale
	opt.ClusterOption.MaxMovedRedirections = 3
	if opt.Sentinel.MasterSet != "" {
		opt.Sentinel.Dialer, opt.Sentinel.TLSConfig, opt.Sentinel.ClientName = opt.Dialer, opt.TLSConfig, opt.ClientName
		opt.Sentinel.Username, opt.Sentinel.Password = o.SentinelUsername, o.SentinelPassword
		opt.Sentinel.TopologyRefreshInterval = time.Second
	}
}

// asks makes the kernel detect a dead peer within 3 seconds, as a PING would.
var asks = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2}

// An opening creates the client in the background and retries until it succeeds.
type opening struct {
	made   atomic.Pointer[rueidis.Client]
	failed atomic.Pointer[error]
	once   sync.Once
	first  chan struct{} // closed after the first attempt
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

// client returns the client. It waits for the first attempt to create it.
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
