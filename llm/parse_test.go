package llm

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	chatPath     = "/v1/chat/completions"
	responsePath = "/v1/responses"
	messagePath  = "/v1/messages"
	geminiPath   = "/v1beta/models/gemini-x:generateContent"
	conversePath = "/model/anthropic.claude-x/converse"
	novaPath     = "/model/amazon.nova-x/invoke"
)

func route(t testing.TB, path string) Route {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	r, ok := Recognize(http.MethodPost, path, query)
	if !ok {
		t.Fatalf("%s is not recognised", path)
	}
	return r
}

func parse(t testing.TB, path, body string) *Request {
	t.Helper()
	r, err := route(t, path).Parse([]byte(body))
	if err != nil {
		t.Fatalf("%s %s: %v", path, body, err)
	}
	return r
}

func TestParseReadsWhatMatters(t *testing.T) {
	for _, c := range []struct {
		path, body  string
		model       string
		max, n      int64
		temperature float64 // -1: not set
		stream      bool
		tools       bool
		reports     bool
	}{
		{chatPath, `{"model":"m"}`, "m", 0, 1, -1, false, false, true},
		{chatPath, `{"MODEL":"m","messages":[]}`, "m", 0, 1, -1, false, false, true},
		{chatPath, `{"Model":null,"messages":[]}`, "", 0, 1, -1, false, false, true},
		{chatPath, "\uFEFF" + ` {"model":"m"}` + "\r\n", "m", 0, 1, -1, false, false, true},
		{chatPath, `{"model":"m","max_tokens":10,"n":3,"stream":true}`, "m", 30, 3, -1, true, false, false},
		{chatPath, `{"model":"m","max_tokens":10,"max_completion_tokens":20,"temperature":0}`, "m", 20, 1, 0, false, false, true},
		{chatPath, `{"m\u006fdel":"m\u00e9","max_tokens":1e3,"stream":true,"stream_options":{"include_usage":true}}`, "mé", 1000, 1, -1, true, false, true},
		{chatPath, `{"model":"m","max_tokens":-1,"n":null,"stream":null,"stream_options":null,"tools":[],"temperature":null}`, "m", 0, 1, -1, false, false, true},
		{chatPath, `{"model":"m","max_tokens":"10","stream":"true","temperature":"0.5","functions":[{}]}`, "m", 10, 1, 0.5, true, true, false},
		{chatPath, `{"model":"m","max_tokens":1e300,"n":2}`, "m", math.MaxInt64, 2, -1, false, false, true},
		{chatPath, `{"model":"m","max_tokens":10.2}`, "m", 11, 1, -1, false, false, true},
		{chatPath, `{"model":"m","max_tokens":99999999999999999999}`, "m", math.MaxInt64, 1, -1, false, false, true},
		{"/v1/completions", `{"model":"m","prompt":"x","max_tokens":10,"best_of":4,"n":2,"stream":true}`, "m", 40, 2, -1, true, false, false},
		{"/openai/deployments/d/chat/completions", `{"stream":true}`, "d", 0, 1, -1, true, false, false},
		{responsePath, `{"model":"m","max_output_tokens":7,"stream":true,"tools":[{"type":"web_search"}]}`, "m", 7, 1, -1, true, true, true},
		{responsePath, `{"prompt":{"id":"p"},"input":"x"}`, "", 0, 1, -1, false, false, true},
		{messagePath, `{"model":"m","max_tokens":7,"stream":true,"temperature":1}`, "m", 7, 1, 1, true, false, true},
		{geminiPath, `{"generationConfig":{"maxOutputTokens":7,"candidateCount":2,"temperature":0.0}}`, "gemini-x", 14, 2, 0, false, false, true},
		{geminiPath, `{"generation_config":{"max_output_tokens":"7"},"tools":[{"googleSearch":{}}]}`, "gemini-x", 7, 1, -1, false, true, true},
		{conversePath, `{"inferenceConfig":{"maxTokens":7,"temperature":0.1},"toolConfig":{"tools":[{}]}}`, "anthropic.claude-x", 7, 1, 0.1, false, true, true},
		{conversePath + "-stream", `{}`, "anthropic.claude-x", 0, 1, -1, true, false, true},
		{novaPath, `{"inferenceConfig":{"max_new_tokens":7}}`, "amazon.nova-x", 7, 1, -1, false, false, true},
		{"/model/meta.l/invoke", `{"prompt":"x","max_gen_len":7}`, "meta.l", 7, 1, -1, false, false, true},
		{"/model/amazon.titan/invoke", `{"inputText":"x","textGenerationConfig":{"maxTokenCount":7,"temperature":0}}`, "amazon.titan", 7, 1, 0, false, false, true},
		{"/model/mine/invoke", "a,b\n1,2\n", "mine", 0, 1, -1, false, false, false},
	} {
		r := parse(t, c.path, c.body)
		if r.Model != c.model || r.MaxOutput != c.max || r.Choices != c.n || r.Stream != c.stream || r.Tools != c.tools || r.ReportsUsage != c.reports {
			t.Errorf("%s %s: got model %q max %d choices %d stream %v tools %v reports %v", c.path, c.body, r.Model, r.MaxOutput, r.Choices, r.Stream, r.Tools, r.ReportsUsage)
		}
		if said := r.Temperature != nil; said != (c.temperature >= 0) || said && *r.Temperature != c.temperature {
			t.Errorf("%s %s: got temperature %v, want %v", c.path, c.body, r.Temperature, c.temperature)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ path, body, field, problem string }{
		{chatPath, ``, "", "empty"},
		{chatPath, "  \n", "", "empty"},
		{chatPath, `hello`, "", "not JSON"},
		{chatPath, `{"model":"m"`, "", "ends too early"},
		{chatPath, `{"model":"m",}`, "", "not JSON"},
		{chatPath, `{"model":"m"} x`, "", "after the end"},
		{chatPath, `{"model":"m"}{}`, "", "after the end"},
		{chatPath, `["m"]`, "", "not an object"},
		{chatPath, `{"model":"m","x":"` + "\xff" + `"}`, "", "UTF-8"},
		{chatPath, `{"model":"m","x":"` + "\n" + `"}`, "", "control character"},
		{chatPath, `{"model":"m","x":"\x"}`, "", "escape"},
		{chatPath, `{"model":"m","x":"\u12g4"}`, "", "escape"},
		{chatPath, `{"model":"m","x":01}`, "", "not JSON"},
		{chatPath, `{"model":"m","x":NaN}`, "", "not JSON"},
		{chatPath, `{"model":"m","x":` + strings.Repeat("[", maxDepth+1), "", "deeper than"},
		{chatPath, `{"model":"m","prompt":"a","prompt":"b"}`, "prompt", "twice"},
		{chatPath, `{"model":"m","prompt":"a","input":"b","input":"c"}`, "input", "twice"},
		{chatPath, `{"model":["m"]}`, "model", "not a string"},
		{chatPath, `{"model":"m","model":"n"}`, "model", "twice"},
		{chatPath, `{"model":"m","stream":{}}`, "stream", "neither"},
		{chatPath, `{"model":"m","stream":"maybe"}`, "stream", "neither"},
		{chatPath, `{"model":"m","stream_options":5}`, "stream_options", "not an object"},
		{chatPath, `{"model":"m","stream_options":{"include_usage":[]}}`, "include_usage", "neither"},
		{chatPath, `{"model":"m","max_tokens":"many"}`, "max_tokens", "not a number"},
		{chatPath, `{"model":"m","max_tokens":true}`, "max_tokens", "not a number"},
		{chatPath, `{"model":"m","temperature":"Infinity"}`, "temperature", "not a number"},
		{geminiPath, `{"generationConfig":[]}`, "generationConfig", "not an object"},
		{geminiPath, `{"generationConfig":{"maxOutputTokens":{}}}`, "maxOutputTokens", "not a number"},
		{geminiPath, `{"generationConfig":{},"generation_config":{}}`, "generation_config", "twice"},
		{novaPath, `{"x"`, "", "not JSON"},
	} {
		_, err := route(t, c.path).Parse([]byte(c.body))
		e, ok := errors.AsType[*RequestError](err)
		if !ok || e.Field != c.field || !strings.Contains(e.Error(), c.problem) {
			t.Errorf("%s %.60s: got %v, want field %q and %q", c.path, c.body, err, c.field, c.problem)
		}
	}
}

// The scanner accepts the same texts as encoding/json.
func TestScanAgreesWithTheStandardLibrary(t *testing.T) {
	for _, s := range jsonTexts(t) {
		_, bad := scan([]byte(s))
		if valid := json.Valid([]byte(s)); valid != (bad == nil) {
			t.Errorf("%.80q: json.Valid %v, scan %v", s, valid, bad)
		}
	}
}

func jsonTexts(t testing.TB) []string {
	texts := []string{`0`, `-0`, `-`, `1.`, `.5`, `1e`, `1e+`, `1E-07`, `00`, `-01`, `""`, `"`, `"\`, `"\u`, `"\u00`, `"\ud800"`, `"\ud83d\ude00"`,
		`{}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:1}`, `{"a":1 "b":2}`, `[]`, `[,]`, `[1,]`, `[1 2]`, `]`, `}`, `tru`, `true1`, `nulll`, `[true,false,null]`,
		"\"abcdefgh\x1fijk\"", "\"abcdefghijklmnop\x7f\"", `"abcdefghi\n日本"`, "\v1", "1\f", `{"a":{"b":[{"c":"d"}]}}`}
	files, _ := filepath.Glob("testdata/*.json")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	return texts
}
