package httpx

import (
	"cmp"
	"net"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/buffers"
)

// NewBase returns the transport of a Transport without Base: the standard transport with the policy's timeouts and enough idle
// connections for many callers. It adds nothing to requests and does not decompress responses. keepIdle is the number of idle
// connections to keep; 0 means 256. A dead connection, for instance of a machine that is gone, is detected within half a minute.
// HTTP/2 uses a ping, because calls would otherwise still use the connection. For an idle HTTP/1.1 connection, the system detects
// it. Of an HTTP/2 response that its caller does not read, at most 1 MiB is buffered, and less if the process has little memory.
// One connection buffers at most a quarter of that memory.
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

// BaseTimeouts returns the timeouts that a base transport applies for a policy, see NewBase. With a bound of attempts in flight
// it omits Headers: Transport applies that timeout itself, because an attempt may continue after its caller has received a
// timeout.
func BaseTimeouts(p weir.Policy) weir.Timeouts {
	t := p.WithDefaults().Timeouts
	if p.Bounded() {
		t.Headers = -1
	}
	return t
}
