package classify

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/outcome"
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
	case method == http.MethodHead, first(h, "Content-Length") == "0":
		return false
	case status >= 200 && status < 300:
		return mayHide(method) && isXML(h) && small(h)
	}
	return status >= 400 && isText(h, status)
}

// StartBytes is how much of a body shows whether it may be an error in a success; see NeedsStart.
const StartBytes = 48

// NeedsStart reports whether the first StartBytes of the body of a success can show that it may be an error, which
// Starts then tells. GraphQL throttles with status 200. asked says that the request went to a server of GraphQL, whose
// answers are looked at whatever their length. Others are looked at if they say that they are short, since their
// first bytes then follow immediately. A document that is stored is the caller's data, even if it looks like an error.
func NeedsStart(method string, status int, h http.Header, asked bool) bool {
	if method == http.MethodHead || !startsJSON(status, h) {
		return false
	}
	if asked {
		return true
	}
	n, err := strconv.ParseInt(first(h, "Content-Length"), 10, 64)
	return err == nil && n > 0 && n <= MaxBody && h["Content-Encoding"] == nil
}

func startsJSON(status int, h http.Header) bool {
	return status == http.StatusOK && strings.Contains(mediaType(h), "json") &&
		h["Last-Modified"] == nil && h["Accept-Ranges"] == nil && h["X-Amz-Request-Id"] == nil && h["Content-Disposition"] == nil
}

// Starts reports whether a JSON text that begins with start may be an error. All of it should be passed to HTTP then, or its
// first MaxBody bytes.
func Starts(start []byte) bool {
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n[") // a list, of a batch
	rest, ok := bytes.CutPrefix(start, []byte("{"))
	if !ok {
		return false
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	for _, key := range [...]string{`"error`, `"extensions"`, `"ok"`, `"data"`} {
		if after, ok := bytes.CutPrefix(rest, []byte(key)); ok {
			value := bytes.TrimLeft(after, " \t\r\n:")
			return key != `"data"` && key != `"ok"` || len(value) > 0 && (value[0] == 'n' || value[0] == 'f') // null, false
		}
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

// isText reports whether the answer may be JSON, XML or a message. Many a server labels
// its errors text/plain, or not at all. HTML is a proxy's own page, which may say why and until when it refuses.
func isText(h http.Header, status int) bool {
	t := mediaType(h)
	if t == "text/html" {
		return status == 403 || status == 420 || status == 429
	}
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

	field    time.Duration // how long to stay away, in a field that says it
	hasField bool
	words    time.Duration // the same, in a message
	hasWords bool

	perDay  bool // it names a limit per day of Google's
	spoken  bool // a message says that the call was refused for rate
	refused bool // there are errors and no result, as GraphQL answers with status 200
	says429 bool // a number says that the status is 429
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
	case d.hasField:
		return d.field, true
	}
	return d.words, d.hasWords
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
	d.add(first(r.Header, "X-Mashery-Error-Code"))
	if len(r.Body) == 0 || r.Method == http.MethodHead {
		return d
	}
	base := r.base()
	switch body := plain(r); leader(body) {
	case 0:
	case '{', '[':
		d.readJSON(body, base)
		d.addStatus(r.Status)
	case '<':
		if root, text := d.readXML(body, base); root == "html" {
			d.readText(string(body[:min(len(body), maxPage)]), base)
		} else if len(d.codes) == 0 || !decides(d.codes[0]) { // AWS says nothing in words
			d.readText(text, base)
		}
	default:
		d.readText(string(body[:min(len(body), maxMessage)]), base)
	}
	if usage := first(r.Header, "X-Business-Use-Case-Usage"); usage != "" && !d.hasField { // Meta's
		var more detail
		more.readJSON([]byte(usage), base)
		d.field, d.hasField = more.field, more.hasField
	}
	return d
}

// maxPage is how much is searched of a page of HTML.
const maxPage = 16 << 10

// readText searches a message for what it says in words.
func (d *detail) readText(message string, base time.Time) {
	message = lower(message)
	d.words, _, d.hasWords = messageWait(message, base)
	d.spoken = saysThrottled(message)
}

// errorInside finds the error that S3 sends in place of a result after it has
// already said 200.
func errorInside(r *Response) (d detail, ok bool) {
	if len(r.Body) == 0 || r.Method == http.MethodHead || r.Status < 200 || r.Status >= 300 {
		return d, false
	}
	body := plain(r)
	switch leader(body) {
	case '{', '[':
		if !startsJSON(r.Status, r.Header) || !Starts(body) {
			return d, false
		}
		d.readJSON(body, r.base())
		d.addStatus(r.Status)
		_, v, known := pick(d.codes)
		return d, d.refused && known && v.class == outcome.Throttled
	case '<':
		if !mayHide(r.Method) {
			return d, false
		}
		if root, _ := d.readXML(body, r.base()); root != "Error" {
			return d, false
		}
	default:
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

// addStatus adds the status that a body contains, as the last of the codes, unless it is that of the answer.
func (d *detail) addStatus(status int) {
	if d.says429 && status != http.StatusTooManyRequests {
		d.add("429")
	}
}

// leader is the first byte that says what the body is.
func leader(body []byte) byte {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if len(body) == 0 {
		return 0
	}
	return body[0]
}
