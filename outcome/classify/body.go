package classify

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MaxBody is the most that is looked at of a body; nobody need read more.
const MaxBody = 64 << 10

// NeedsBody reports whether a prefix of the body can change what HTTP says of
// an answer to method with this status and header. The prefix is the first
// MaxBody bytes, or less if the body is shorter.
//
// It is true of most errors, and of those successes that may hold an error:
// XML answers to PUT and POST. S3 sends 200 for CompleteMultipartUpload,
// CopyObject and UploadPartCopy before it knows, then white space for as long as
// minutes, and only then a result or an <Error>. A caller that streams must
// therefore commit to nothing until it has seen the name of the root element
// (or MaxBody bytes that are not leading white space): it reads on, drops the
// leading white space, and passes what follows as Body. If its client needs
// the white space to stay connected, it has to give up on classifying.
func NeedsBody(method string, status int, h http.Header) bool {
	switch {
	case method == http.MethodHead, first(h, "Content-Length") == "0", !readable(h):
		return false
	case status >= 200 && status < 300:
		return mayHide(method) && isXML(h) && small(h)
	}
	return status >= 400 && isText(h)
}

// readable reports whether the body's coding is one that plain can undo.
func readable(h http.Header) bool {
	switch first(h, "Content-Encoding") {
	case "", "identity", "gzip":
		return true
	}
	return false
}

// mayHide reports whether a success may turn out to be an error. What GET
// returns is the caller's data, even if it looks like an error.
func mayHide(method string) bool {
	return method == http.MethodPut || method == http.MethodPost
}

func isXML(h http.Header) bool {
	return strings.HasSuffix(mediaType(h), "xml")
}

// isText reports whether the answer may be JSON or XML. Many a server labels
// its errors text/plain, or not at all; HTML is a proxy's own page.
func isText(h http.Header) bool {
	t := mediaType(h)
	return t == "" || t == "text/plain" || strings.HasSuffix(t, "xml") || strings.Contains(t, "json")
}

func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(first(h, "Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// small reports whether the whole body may fit a prefix; unknown counts as small.
func small(h http.Header) bool {
	n, err := strconv.ParseInt(first(h, "Content-Length"), 10, 64)
	return err != nil || n <= MaxBody
}

// A detail is what an error says beyond its status.
type detail struct {
	codes   []string // what happened, in the upstream's words, the most exact first
	message string
	retry   string // google.rpc.RetryInfo
	perDay  bool   // google.rpc.QuotaFailure names a limit per day
}

// bodyWait is how long the body says to stay away. What Gemini says next to a daily
// quota is for the minute, so it does not count: its days end at midnight in California
// (ai.google.dev/gemini-api/docs/rate-limits, November 2026).
func bodyWait(v verdict, d *detail, base time.Time) (time.Duration, bool) {
	switch {
	case len(d.codes) > 0 && d.codes[0] == ntfyDailyMessages:
		return untilMidnight(base, time.UTC)
	case v.quota && d.perDay:
		return untilMidnight(base, california())
	}
	if wait, ok := duration(d.retry); ok {
		return wait, true
	}
	return tryAgainIn(d.message)
}

// california is nil on machines that know of no zones.
var california = sync.OnceValue(func() *time.Location {
	zone, _ := time.LoadLocation("America/Los_Angeles") // nil with an error
	return zone
})

// untilMidnight is the time until a new day begins in the zone.
func untilMidnight(base time.Time, zone *time.Location) (time.Duration, bool) {
	if zone == nil || base.IsZero() {
		return 0, false
	}
	y, m, day := base.In(zone).Date()
	return until(time.Date(y, m, day+1, 0, 0, 0, 0, zone), base)
}

// tryAgainIn reads OpenAI's "Please try again in 4.891s."
func tryAgainIn(message string) (time.Duration, bool) {
	_, after, ok := strings.Cut(message, "try again in ")
	if !ok {
		return 0, false
	}
	v, _, _ := strings.Cut(after, " ")
	return duration(strings.TrimRight(v, ".,"))
}

// daily reports whether the message or the details speak of a day's amount. Bedrock
// says it only in words, "Too many tokens per day", and so does OpenAI: "Rate limit
// reached for gpt-4o on requests per day (RPD)".
func daily(code string, d *detail) bool {
	_, known := awsVerdict(code)
	if known = known || code == openAIRate || code == anthropicRate || code == "too_many_requests"; known && strings.Contains(strings.ToLower(d.message), "per day") {
		return true
	}
	return d.perDay
}

// tooLarge reports whether OpenAI calls throttling what the limit could not hold even
// if it were full.
func tooLarge(code string, d *detail) bool {
	return code == openAIRate && strings.HasPrefix(d.message, "Request too large")
}

// readDetail collects what header and body of an error say.
func readDetail(r *Response) detail {
	var d detail
	d.add(queryErrorCode(first(r.Header, "X-Amzn-Query-Error")))
	d.add(bareAWSCode(first(r.Header, "X-Amzn-Errortype")))
	if len(r.Body) == 0 || r.Method == http.MethodHead {
		return d
	}
	switch body := plain(r); leader(body) {
	case '{', '[':
		d.readJSON(body)
	case '<':
		d.readXML(body)
	}
	return d
}

// errorInside finds the error that S3 sends in place of a result after it has
// already said 200.
func errorInside(r *Response) (d detail, ok bool) {
	if len(r.Body) == 0 || !mayHide(r.Method) || r.Status < 200 || r.Status >= 300 {
		return d, false
	}
	body := plain(r)
	if leader(body) != '<' || d.readXML(body) != "Error" {
		return d, false
	}
	if len(d.codes) == 0 {
		d.add("InternalError") // cut before the code
	}
	return d, true
}

// add adds a code, unless it cannot be one: codes end up in labels and logs.
func (d *detail) add(code string) {
	const most = 128
	if code == "" || len(code) > most {
		return
	}
	for i := range len(code) {
		if code[i] <= ' ' || code[i] > '~' {
			return
		}
	}
	d.codes = append(d.codes, code)
}

// plain is at most MaxBody bytes of the body, unpacked. Proxies see bodies
// packed that they may not ask to have unpacked, since Accept-Encoding is signed.
func plain(r *Response) []byte {
	body := r.Body[:min(len(r.Body), MaxBody)]
	if first(r.Header, "Content-Encoding") != "gzip" {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	out, _ := io.ReadAll(io.LimitReader(z, MaxBody)) // cut short is as good as whole
	return out
}

// leader is the first byte that says what the body is.
func leader(body []byte) byte {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if len(body) == 0 {
		return 0
	}
	return body[0]
}
