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

// Harmless are the headers that make no other request of one: they are about its way
// here, not about what is asked, or who asks. A name that ends in * stands for all that begin
// so. Requests that differ in any other header that is sent on never share an answer.
var Harmless = []string{
	"Accept-Encoding", "Cache-Control", "Content-Length", "Date", "Pragma", "User-Agent",
	"Idempotency-Key", "X-Idempotency-Key", "X-Correlation-Id", "X-Request-Id", "X-Client-Request-Id", "X-Ms-Client-Request-Id",
	"Traceparent", "Tracestate", "Baggage", "B3", "X-B3-*", "Sentry-Trace", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "X-Datadog-*", "Uber-Trace-Id",
	"X-Stainless-*", "X-Weir-*", "X-Goog-Api-Client", "Amz-Sdk-*", "X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-User-Agent",
}

// forms are what Accept may ask for that the body says, too: the form of an answer is not its
// content.
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

// apart tells a request from all others that may be answered in another way, apart from its
// body: by method, query, caller, and every header that is not harmless.
func (x *exchange) apart(r *http.Request, h http.Header) string {
	sum := sha256.New()
	at := x.path[:strings.LastIndexByte(x.path, '/')+1] // what follows is the operation, or the model
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

// alt reports whether a parameter says only in which form an answer is to be sent.
func alt(name, value string) bool { return name == "alt" && (value == "sse" || value == "json") }

// told reports whether a header says only who calls, which is known by what it says: a token
// with claims is another each hour.
func (x *exchange) told(name string) bool {
	c := x.d.o.Callers
	return c != nil && x.known && slices.Contains(c.Consumed, name)
}

// add adds a text with its length before it.
func add(to hash.Hash, s string) {
	_, _ = to.Write(append(binary.AppendUvarint(nil, uint64(len(s))), s...))
}

// steady is the value of a header without what is new each time: of a signature of AWS the
// access key counts.
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
