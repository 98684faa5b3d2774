package httpx

import (
	"cmp"
	"net"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/buffers"
)

// NewBase is the transport that a Transport without Base uses: the standard one
// with the policy's timeouts, enough idle connections for many callers, and
// nothing added to requests or unpacked from answers. keepIdle is how many idle
// connections are kept; 0 means 256. A connection that has fallen silent, as when the
// machine behind it is gone, is found out within half a minute: of HTTP/2, over which calls
// would go on to be made, by a ping, and an idle one of HTTP/1.1 by the system. Of an
// answer over HTTP/2 that its caller does not read, at most 1 MiB is held, and less where the process has little memory. One
// connection holds a quarter of that memory at most.
func NewBase(t weir.Timeouts, keepIdle int) *http.Transport {
	keepIdle = cmp.Or(keepIdle, 256)
	dialer := &net.Dialer{Timeout: max(0, t.Connect), KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   max(0, t.TLS),
		ResponseHeaderTimeout: max(0, t.Headers),
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          keepIdle,
		MaxIdleConnsPerHost:   keepIdle,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second, MaxReceiveBufferPerStream: buffers.Window(), MaxReceiveBufferPerConnection: buffers.ConnectionWindow()},
	}
}

func (t *Transport) roundTripper() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	t.once.Do(func() { t.base = NewBase(BaseTimeouts(t.Upstream.Policy()), 0) })
	return t.base
}

// BaseTimeouts are those that a base transport for a policy keeps; see NewBase. With a
// bound of what is in flight Headers is not among them: Transport keeps that itself, as
// an attempt may go on when its caller has been told that it took too long.
func BaseTimeouts(p weir.Policy) weir.Timeouts {
	t := p.WithDefaults().Timeouts
	if p.Bounded() {
		t.Headers = -1
	}
	return t
}
