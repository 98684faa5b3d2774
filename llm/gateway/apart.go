package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/httpx"
)

// Harmless lists the headers that do not distinguish requests. They concern transport, not the question or the caller's
// identity. A name that ends in * stands for all names with that prefix. Requests that differ in any other forwarded
// header never share an answer.
var Harmless = []string{
	"Accept-Encoding", "Cache-Control", "Content-Length", "Date", "Pragma", "User-Agent",
	"Idempotency-Key", "X-Idempotency-Key", "X-Correlation-Id", "X-Request-Id", "X-Client-Request-Id", "X-Ms-Client-Request-Id",
	"Traceparent", "Tracestate", "Baggage", "B3", "X-B3-*", "Sentry-Trace", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "X-Datadog-*", "Uber-Trace-Id",
	"X-Stainless-*", "X-Weir-*", "X-Goog-Api-Client", "Amz-Sdk-*", "X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-User-Agent",
}

// forms lists the values of Accept that the body also determines. They select the format of an answer, not its content.
var forms = []string{"", "*/*", "application/json", "text/event-stream", "application/vnd.amazon.eventstream"}

func harmless(name string, values []string) bool {
	if name == "Accept" {
		return len(values) == 1 && slices.Contains(forms, values[0])
	}
	return slices.ContainsFunc(Harmless, func(known string) bool {
		prefix, all := strings.CutSuffix(known, "*")
		return name == known || all && strings.HasPrefix(name, prefix)
	})
}

// apart returns a hash of everything except the body that may change the answer: method, path prefix, query, caller, and
// all headers that are not harmless.
func (x *exchange) apart(r *http.Request, h http.Header) string {
	sum := sha256.New()
	at := x.path[:strings.LastIndexByte(x.path, '/')+1] // the operation or the model follows
	for _, s := range []string{r.Method, at, without(r.URL.RawQuery, alt), httpx.CallerOf(r.Context())} {
		add(sum, s)
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if values := h[name]; !harmless(name, values) && !x.told(name) {
			add(sum, name+" "+strconv.Itoa(len(values)))
			for _, v := range values {
				add(sum, steady(name, v))
			}
		}
	}
	return string(sum.Sum(nil))
}

// alt reports whether a parameter only selects the format of the response.
func alt(name, value string) bool { return name == "alt" && (value == "sse" || value == "json") }

// told reports whether a header only identifies the caller and the caller is already known from it. Such a header is not
// hashed, because a token with claims changes every hour.
func (x *exchange) told(name string) bool {
	c := x.d.o.Callers
	return c != nil && x.known && slices.Contains(c.Consumed, name)
}

// add hashes a text with a length prefix.
func add(to hash.Hash, s string) {
	_, _ = to.Write(append(binary.AppendUvarint(nil, uint64(len(s))), s...))
}

// steady returns a header's value without the parts that change with every request. For an AWS signature it returns the
// access key ID.
func steady(name, v string) string {
	if name != "Authorization" || !strings.HasPrefix(v, "AWS4-HMAC-SHA256 ") {
		return v
	}
	_, id, _ := strings.Cut(v, "Credential=")
	id, _, said := strings.Cut(id, "/")
	if !said {
		return v
	}
	return "AWS4 " + id
}
