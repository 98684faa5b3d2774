package classify

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// remainingOf returns the header with the remaining amount of a row's limit, or "".
func remainingOf(r *Row) string {
	for i := range Table {
		if other := &Table[i]; r.Group != "" && other.Group == r.Group && other.Means == Remaining {
			return other.Name
		}
	}
	return ""
}

// sent returns the header of a row with its example.
func (r *Row) sent() http.Header {
	h := make(http.Header)
	h.Set(strings.Replace(r.Name, "*", "X-Gateway-", 1), r.Example)
	if name := remainingOf(r); name != "" && (r.Means == Reset || r.Means == Window) {
		h.Set(name, "0")
	}
	if r.Group == unified && r.Means != Remaining {
		h.Set("Anthropic-Ratelimit-Unified-Status", "rejected")
	}
	return h
}

func (r *Row) wait(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(r.Reads)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// nested returns a JSON text with a value at a path.
func nested(path string, value any) string {
	keys := strings.Split(strings.ReplaceAll(path, "..", ".\x00"), ".")
	for _, key := range slices.Backward(keys) {
		value = map[string]any{strings.ReplaceAll(key, "\x00", "."): value}
	}
	b, _ := json.Marshal(value)
	return string(b)
}

// inArrays puts the values of an object into arrays, which does not change their meaning.
func inArrays(body string) string {
	return regexp.MustCompile(`:(\{.*\})\}$`).ReplaceAllString(body, ":[$1]}")
}

// TestTable reads the example of each row.
func TestTable(t *testing.T) {
	for i := range Table {
		r := &Table[i]
		t.Run(fmt.Sprintf("%v %s %v %d", r.Place, r.Name, r.Means, i), func(t *testing.T) {
			if r.API == "" || r.Source == "" || !regexp.MustCompile(`^20\d\d-\d\d$`).MatchString(r.Date) || r.Example == "" || r.Reads == "" {
				t.Fatalf("incomplete: %+v", *r)
			}
			switch r.Place {
			case Header:
				testHeader(t, r)
			case JSON:
				testJSON(t, r)
			case Message:
				for _, body := range []string{
					nested("error.message", "No. Please "+r.Name+" "+r.Example+". Bye."), nested("description", r.Name+" "+r.Example),
					"Slow down; " + strings.ToUpper(r.Name) + ": " + r.Example, "<html><body>" + r.Name + " " + r.Example + "</body></html>",
				} {
					testWait(t, Response{Status: 429, Body: []byte(body)}, r.wait(t))
				}
			case Code:
				for _, code := range []string{r.Name, r.Example} {
					for _, status := range []int{400, 403, 429} {
						o := HTTP(Response{Status: status, Body: []byte(nested("error.code", code)), Now: now})
						if o.Class != outcome.Throttled || !o.Undone || o.Hint.Quota != (r.Means == Quota) {
							t.Errorf("status %d: %+v", status, o)
						}
					}
				}
			case Words:
				for _, body := range []string{nested("message", r.Example), r.Example, "<html><title>" + r.Example + "</title></html>"} {
					if o := HTTP(Response{Status: 403, Body: []byte(body), Now: now}); o.Class != outcome.Throttled || !o.Undone || o.Hint.Quota != (r.Means == Quota) {
						t.Errorf("%s: %+v", body, o)
					}
					if o := HTTP(Response{Status: 404, Body: []byte(body), Now: now}); o.Class != outcome.Rejected {
						t.Errorf("status 404: %s: %+v", body, o)
					}
				}
			}
		})
	}
}

func testWait(t *testing.T, r Response, want time.Duration) {
	t.Helper()
	r.Now = now
	o := HTTP(r)
	if o.Class != outcome.Throttled || !o.Hint.Said || o.Hint.After != want {
		t.Errorf("%v %s: got %+v, want a wait of %v", r.Header, r.Body, o, want)
	}
}

func testHeader(t *testing.T, r *Row) {
	h := r.sent()
	o := HTTP(Response{Status: 429, Header: h, Now: now})
	switch r.Means {
	case Wait, Reset, Full:
		testWait(t, Response{Status: 429, Header: h}, r.wait(t))
	case Advice:
		if o.Hint.Advice != outcome.NotAgain {
			t.Errorf("%v: %+v", h, o)
		}
	case Limit, Remaining, Window:
		if len(o.Hint.Limits) != 1 {
			t.Fatalf("%v: %+v", h, o)
		}
		l := o.Hint.Limits[0]
		got := map[Meaning]string{Limit: strconv.FormatInt(l.Limit, 10), Remaining: strconv.FormatInt(l.Remaining, 10), Window: l.Window.String()}[r.Means]
		if want := r.Reads; got != want && !strings.HasPrefix(got, want+"0s") {
			t.Errorf("%v: got %s, want %s", h, got, want)
		}
	}
}

func testJSON(t *testing.T, r *Row) {
	if r.Means == Names || r.Means == Known {
		for _, body := range []string{nested(r.Name, r.Example), inArrays(nested(r.Name, r.Example)), "[" + nested(r.Name, r.Example) + "]"} {
			if o := HTTP(Response{Status: 429, Body: []byte(body), Now: now}); o.Code != r.Reads {
				t.Errorf("%s: got %s, want %s", body, o.Code, r.Reads)
			}
		}
		return
	}
	if r.Example[0] == '{' {
		testWait(t, Response{Status: 429, Body: []byte(r.Example)}, r.wait(t))
		return
	}
	values := []any{r.Example}
	if n, err := strconv.ParseFloat(r.Example, 64); err == nil {
		values = append(values, n)
	}
	paths := []string{r.Name}
	if key, any := strings.CutPrefix(r.Name, "*."); any {
		camel := regexp.MustCompile(`_[a-z]`).ReplaceAllStringFunc(key, func(s string) string { return strings.ToUpper(s[1:]) })
		paths = []string{key, camel, strings.ReplaceAll(key, "_", "-"), "error." + key, "error.details." + camel, "errors.extensions." + key}
	}
	for _, path := range paths {
		for _, v := range values {
			testWait(t, Response{Status: 429, Body: []byte(nested(path, v))}, r.wait(t))
			testWait(t, Response{Status: 429, Body: []byte(inArrays(nested(path, v)))}, r.wait(t))
		}
	}
}

var update = flag.Bool("update", false, "write docs/reference/hints.md")

const hintsPage = "../../docs/reference/hints.md"

// A section is a part of the page.
type section struct {
	title, text string
	brief       bool // lists the names only
	has         func(r *Row) bool
}

var sections = []section{
	{"Waits in headers", "The first header with a readable value counts, regardless of status. If it has several lines or values, the longest counts. `*` stands for any prefix. Such names match in any spelling: `Retry-After`, `RetryAfter`.", false, func(r *Row) bool { return r.Place == Header && r.Means == Wait }},
	{"Advice in headers", "`true` or `false`.", false, func(r *Row) bool { return r.Means == Advice }},
	{"Limits in headers", "Each row describes one limit. After a throttle, weir waits until `reset` if no units remain, or an unknown number. `full` is the time when the limit is full again. weir waits until then only if the remaining units are unknown, or if none remain and `full` is more than an hour away. A list contains several limits. weir reads the rows below `Anthropic-Ratelimit-Unified-Limit` only on failures.", false, func(r *Row) bool {
		return r.Place == Header && r.Means != Wait && r.Means != Advice
	}},
	{"Waits in JSON bodies", "weir reads these fields if no header contains a wait. `*.` matches any depth. Keys after `*.` match in any spelling: `retry_after`, `retryAfter`, `Retry-After`. Paths ignore arrays. weir reads `retry_after: {\"seconds\": 4}` as `retry_after_seconds`. Elements and attributes of XML also match. Of these fields, only `retry` and `throttle` make a 403 a throttle.", true, func(r *Row) bool { return r.Place == JSON && (r.Means == Wait || r.Means == Reset) }},
	{"Waits in messages", "weir reads these messages if no field contains a wait. The words must precede the value, in any string of a JSON body, in text, and in HTML pages with status 403, 420 and 429. A number without a unit is in seconds.", true, func(r *Row) bool { return r.Place == Message }},
	{"Fields with codes", "weir uses the first of these fields that has a code. From `error.errors.reason` on, a code counts only if it is listed below or in [classification](classification.md).", true, func(r *Row) bool { return r.Means == Names || r.Means == Known }},
	{"Codes that are throttles", "These codes apply with status 400 and above, and with status 200 if the body has errors and no data. Case and separators are ignored. *quota*: a limit per day or longer is used up.", true, func(r *Row) bool { return r.Place == Code }},
	{"Messages that are throttles", "These messages apply with status 403, if the body has no code. `…` matches any text.", true, func(r *Row) bool { return r.Place == Words }},
}

const hintsHead = `# Hints of upstreams about their limits

<!-- Generated from outcome/classify/table.go: go test ./outcome/classify -run HintsPage -update writes it. -->

outcome/classify/table.go has the source, date and tested example of each row. [Classification](classification.md#hints) describes how weir uses hints.

Values have these forms:

| form | example | read as |
| --- | --- | --- |
| number | ` + "`4`, `4.25`, `\"4\"`" + ` | a number of the row's units |
| number from 10^9 on | ` + "`1795176004`" + ` | seconds since the epoch; in rows with the unit 1ms, only if that time is at most a day ago |
| number from 10^12, 10^15 and 10^18 on | ` + "`1795176004000`" + ` | milliseconds, microseconds and nanoseconds since the epoch |
| duration | ` + "`4s`, `1m30s`, `20ms`, `4 seconds`, `1 hour and 2 minutes`" + ` | a wait |
| duration of ISO 8601 | ` + "`PT4S`, `P1DT2H`" + ` | a wait; a month has 30 days |
| clock | ` + "`00:01:30`, `1.00:00:00`" + ` | hours, minutes and seconds; days before the point |
| instant of ISO 8601 | ` + "`2026-11-20T12:00:04Z`, `2026-11-20T12:00Z`, `20261120T120004+0100`, `2026-11-20 12:00:04`" + ` | until then; UTC without a zone |
| HTTP date | ` + "`Fri, 20 Nov 2026 12:00:04 GMT`, `Friday, 20-Nov-26 12:00:04 GMT`, `Fri Nov 20 12:00:04 2026`" + ` | until then; weir also reads the dates of mail, cookies, Go and JavaScript; UTC without a zone |
| list | ` + "`4, 7`, `30s, 60s`" + ` | the longest; in limit headers, one limit each |

A wait until an instant counts from the response's ` + "`Date`" + `, or without one from weir's clock. Past instants are waits of 0. Pauses are at most 15 minutes, for quotas 31 days. The event and the log line ` + "`paused`" + ` contain the requested wait (` + "`hint`" + `) and the pause (` + "`after`" + `).

weir reads up to 64 KiB of a body. It decompresses gzip, deflate, br and zstd.
`

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// described returns the name of a row with notes for the reader.
func described(r *Row) string {
	var notes []string
	named := r.Means == Reset && (r.Place == JSON || strings.Contains(strings.ToLower(r.Name), "reset"))
	if !named && slices.Contains([]Meaning{Reset, Full, Window, Quota}, r.Means) { // the other names are self-explanatory
		notes = append(notes, r.Means.String())
	}
	if r.Unit > 0 && r.Unit != sec && !regexp.MustCompile(`(?i)[-_ ](ms|msec|millis|milliseconds)$`).MatchString(r.Name) {
		notes = append(notes, strings.TrimSuffix(strings.TrimSuffix(r.Unit.String(), "0s"), "0m"))
	}
	if len(notes) == 0 {
		return code(r.Name)
	}
	return code(r.Name) + " (" + strings.Join(notes, ", ") + ")"
}

// merged returns the names with braces for consecutive ones that differ in one part: X-Ratelimit-{Limit,Remaining}.
func merged(names []string, separator string) (all []string) {
	split := func(name string) (parts []string, note string) {
		name, note, _ = strings.Cut(strings.TrimPrefix(name, "`"), "`")
		return strings.Split(name, separator), note
	}
	for i := 0; i < len(names); {
		parts, note := split(names[i])
		var differ []string
		at, end := -1, i+1
		for ; end < len(names) && len(parts) > 1; end++ {
			next, itsNote := split(names[end])
			if len(next) != len(parts) || itsNote != note && (note != "" && itsNote != "" || separator != "-") {
				break
			}
			var places []int
			for k := range next {
				if next[k] != parts[k] {
					places = append(places, k)
				}
			}
			if len(places) != 1 || at >= 0 && at != places[0] || separator != "-" && (places[0] < len(parts)-1 || parts[0] == "*") {
				break
			}
			note = cmp.Or(note, itsNote)
			at, differ = places[0], append(differ, next[places[0]])
		}
		if at < 0 {
			all = append(all, names[i])
			i++
			continue
		}
		parts[at] = "{" + parts[at] + "," + strings.Join(differ, ",") + "}"
		all, i = append(all, code(strings.Join(parts, separator))+note), end
	}
	return all
}

// generated returns the page: one line for consecutive rows of one group or API.
func generated() string {
	var b strings.Builder
	b.WriteString(hintsHead)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.title, s.text)
		var names, senders []string
		var last *Row
		flush := func() {
			if names != nil && !s.brief {
				fmt.Fprintf(&b, "- %s: %s\n", strings.Join(merged(names, "-"), ", "), strings.Join(senders, "; "))
				names, senders = nil, nil
			}
		}
		for i := range Table {
			r := &Table[i]
			if !s.has(r) {
				continue
			}
			if last == nil || r.Group != last.Group || r.Group == "" && r.API != last.API {
				flush()
			}
			last = r
			if d := described(r); !slices.Contains(names, d) {
				names = append(names, d)
			}
			api := strings.TrimPrefix(r.API, "the same; ")
			if r.Group != "" && r.Group != structured && r.Means != Limit && r.Means != Remaining && len(senders) > 0 {
				continue // its note is about the format, and the page has all forms
			}
			if n := len(senders); n > 0 && strings.HasPrefix(api, senders[n-1]+":") {
				senders = senders[:n-1]
			}
			if api != "the same" && !slices.Contains(senders, api) {
				senders = append(senders, api)
			}
		}
		flush()
		if s.brief {
			fmt.Fprintf(&b, "```text\n%s\n```\n", strings.ReplaceAll(strings.Join(merged(merged(names, ":"), "."), ", "), "`", ""))
		}
	}
	return b.String()
}

func TestHintsPage(t *testing.T) {
	want := generated()
	for i := range Table {
		n := 0
		for _, s := range sections {
			if s.has(&Table[i]) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d sections", Table[i].Name, n)
		}
	}
	if *update {
		if err := os.WriteFile(hintsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(hintsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reference/hints.md does not match the table: go test ./outcome/classify -run HintsPage -update")
	}
}
