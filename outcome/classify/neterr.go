package classify

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/seed1158cd35/weir/outcome"
)

// Error classifies the error of a call; nil is OK. The context must be the caller's own, not the attempt's. If it has ended, the
// caller has left, and the error implies nothing about the upstream. An [outcome.Classifier] among the wrapped errors takes
// precedence, even then: it comes from a response that arrived.
//
// The code is one of a few stable words: "canceled", "timeout", "connection refused", "connection reset", "broken pipe", "eof",
// "no such host", "dns", "unreachable", "dial", "tls", "refused stream", "goaway", "connection lost", "closed". It is
// [InvalidRequest] for a request that net/http refused, which is Rejected, and "error" for an unknown error, which is Unknown.
func Error(ctx context.Context, err error) outcome.Outcome {
	if err == nil {
		return outcome.Outcome{Class: outcome.OK}
	}
	if c, ok := errors.AsType[outcome.Classifier](err); ok {
		return sane(c.Outcome())
	}
	if ctx.Err() != nil {
		return outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}
	}
	return network(err)
}

// sane bounds the hint of a foreign outcome like the package's own hints.
func sane(o outcome.Outcome) outcome.Outcome {
	o.Hint.After = clamp(o.Hint.After)
	return o
}

// network classifies an error while the caller is still waiting.
func network(err error) outcome.Outcome {
	if refused, unsent := refusedHere(err); refused {
		return outcome.Outcome{Class: outcome.Rejected, Code: InvalidRequest, Undone: unsent, Unsent: unsent}
	}
	code := errorCode(err)
	switch code {
	case "":
		return outcome.Outcome{Class: outcome.Unknown, Code: "error"}
	case "canceled":
		// A layer between the caller and the upstream gave up, for instance a hedge. That does not prove a fault of the upstream.
		return outcome.Outcome{Class: outcome.Unknown, Code: code, Undone: neverDone(err), Unsent: unsent(err)}
	}
	return outcome.Outcome{Class: outcome.Failed, Code: code, Undone: neverDone(err), Unsent: unsent(err), Own: lacksHere(err)}
}

// errorCode tries the most specific kinds first: a DNS failure or a refused connection is wrapped in a dial error.
func errorCode(err error) string {
	if code := dnsCode(err); code != "" {
		return code
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.code
		}
	}
	if code := errnoCode(err); code != "" {
		return code
	}
	if code := http2Code(err); code != "" {
		return code
	}
	if timedOut(err) {
		return "timeout"
	}
	if isTLS(err) {
		return "tls"
	}
	if dialing(err) {
		return "dial"
	}
	return ""
}

var kinds = [...]struct {
	err  error
	code string
}{
	{context.DeadlineExceeded, "timeout"},
	{os.ErrDeadlineExceeded, "timeout"},
	{context.Canceled, "canceled"},
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection reset"},
	{syscall.ECONNABORTED, "connection reset"},
	{syscall.EPIPE, "broken pipe"},
	{syscall.ETIMEDOUT, "timeout"},
	{syscall.EHOSTUNREACH, "unreachable"},
	{syscall.ENETUNREACH, "unreachable"},
	{io.ErrUnexpectedEOF, "eof"},
	{io.EOF, "eof"},
	{net.ErrClosed, "closed"},
}

// errnoCode recognizes the Windows error numbers that correspond to the names above.
func errnoCode(err error) string {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return ""
	}
	switch errno {
	case 10061:
		return "connection refused"
	case 10053, 10054:
		return "connection reset"
	case 10060:
		return "timeout"
	case 10051, 10065:
		return "unreachable"
	}
	return ""
}

func dnsCode(err error) string {
	e, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok:
		return ""
	case e.IsNotFound:
		return "no such host"
	case e.IsTimeout:
		return "timeout"
	}
	return "dns"
}

func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// neverDone reports whether the upstream certainly did nothing.
func neverDone(err error) bool { return unsent(err) || refusedStream(err) }

// unsent reports whether certainly no request reached the upstream.
func unsent(err error) bool {
	_, dns := errors.AsType[*net.DNSError](err)
	return dns || dialing(err) || inHandshake(err) || errors.Is(err, syscall.ECONNREFUSED)
}

// dialing reports whether the connection to the upstream, or to a proxy before it, failed.
func dialing(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && (e.Op == "dial" || e.Op == "proxyconnect" || e.Op == "socks connect")
}
