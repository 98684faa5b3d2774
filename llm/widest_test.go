package llm

import (
	"cmp"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/paths"
)

// A model call is recognized in every spelling of its path, and the path that is sent has the SDKs' spelling.
func TestPathsThatNoSDKWrites(t *testing.T) {
	for usual, others := range map[string][]string{
		"/v1/chat/completions": {
			"/v1/chat/%63ompletions", "/v1/chat/completions/", "/v1/chat/completions;x=1", "//v1//chat//completions", "/v1/chat%2Fcompletions", "/V1/Chat/Completions", "/v1/chat/completions%20",
			"/v1/%63hat/%2563ompletions//", `/v1\chat\completions`, "/v1;a/chat;b/completions;c/", "/v1/chat/completions%3Fx=1", "/v1/chat/completions%23", "/v1/chat/completions%00",
		},
		"/v1/messages":   {"/v1/message%73", "/v1/messages/", "/V1/MESSAGES", "/v1/messages;beta=true"},
		"/v1/responses":  {"/v1/%72esponses/", "/v1/responses;"},
		"/v1/embeddings": {"/v1/embeddings/", "/v1/embedding%73"},
		"/v1beta/models/gemini-x:generateContent":         {"/v1beta/models/gemini-x:%67enerateContent", "/v1beta/models/gemini-x:generateContent/", "/v1beta/Models/gemini-x:GenerateContent", "/v1beta/%6dodels/gemini-x%3agenerateContent;a"},
		"/model/meta.llama/converse":                      {"/model/meta.llama/%63onverse", "/model/meta.llama/converse/", "/Model/meta.llama/Converse"},
		"/model/arn%3Aaws%3Ax%2Fus.y/converse":            {"/model/arn%3Aaws%3Ax%2Fus.y/%63onverse", "/model/arn:aws:x/us.y/converse/"},
		"/openai/deployments/Chat%20one/chat/completions": {"/openai/deployments/Chat%20one/chat/completions/", "/openai/Deployments/Chat%20one/%63hat/completions"},
	} {
		want, ok := recognizeAny(usual, "")
		if !ok || want.Path() != usual {
			t.Errorf("%s: %+v %v", usual, want, ok)
		}
		for _, other := range others {
			got, ok := recognizeAny(other, "")
			if !ok || got != want {
				t.Errorf("%s:\n got %+v %v\nwant %+v", other, got, ok, want)
			}
		}
	}
	for _, path := range []string{"/v1/models", "/v1/models/", "/v1/chat/completions/id", "/v1/chat", "/", "", "/completionsx", "/v1/files/completion%73x"} {
		if r, ok := recognizeAny(path, ""); ok {
			t.Errorf("%s is recognised as %+v", path, r)
		}
	}
}

// A path in the SDKs' spelling stays unchanged.
func TestPathsThatSDKsWriteStay(t *testing.T) {
	for _, path := range []string{
		"/v1/chat/completions", "/model/anthropic.claude-v1%3A0/converse", "/model/amazon.nova-lite-v1:0/invoke", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse-stream",
		"/v1beta/models/gemini-x%3AgenerateContent", "/openai/deployments/my%20gpt/chat/completions", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20250101:streamRawPredict",
	} {
		want, _ := Recognize("POST", path, "")
		if got, ok := recognizeAny(path, ""); !ok || got != want || got.Path() != path {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// If a path is not recognized, no server can take it for a model call, for all known ways to spell a path.
func TestNoWayOfWritingHidesACall(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	calls := []string{"/v1/chat/completions", "/v1/messages", "/v1beta/models/7:generateContent", "/model/7/invoke", "/v1/responses"}
	for range 5000 {
		call := calls[r.IntN(len(calls))]
		path := disguised(r, call)
		want, _ := Recognize("POST", call, "")
		got, ok := recognizeAny(path, "")
		if !ok || got.Family != want.Family || got.Operation != want.Operation || got.Generates != want.Generates || !strings.EqualFold(paths.Widest(got.Path()), call) {
			t.Fatalf("seed %d: %q for %s: got %+v %v", seed, path, call, got, ok)
		}
	}
}

// disguised returns another spelling of a path.
func disguised(r *rand.Rand, path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		switch n := r.IntN(12); {
		case c == '/' && n == 0:
			b.WriteString("//")
		case c == '/' && n == 1 && i > 0:
			b.WriteString("%2F")
		case c == '/' && n == 2 && i > 0:
			b.WriteString(";p=" + url.PathEscape(string(rune('a'+r.IntN(26)))) + "/")
		case n == 3:
			b.WriteString("%" + hexOf(c))
		case n == 4:
			b.WriteString("%25" + hexOf(c))
		case n == 5 && c >= 'a' && c <= 'z' && i < strings.LastIndexByte(path, '/'):
			b.WriteByte(c &^ 0x20)
		default:
			b.WriteByte(c)
		}
	}
	for range r.IntN(3) {
		b.WriteString([]string{"/", ";x=1", "%20", "//"}[r.IntN(4)])
	}
	return b.String()
}

func hexOf(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}

// The URL of the upstream may contain a part that identifies the call. The complete path is recognized, and the part
// after the URL's path is sent.
func TestCallsBelowAnotherPath(t *testing.T) {
	for _, c := range []struct{ base, path, operation, model, sent string }{
		{"/v1", "/messages", "messages", "", "/messages"},
		{"/v1", "/v1/messages", "messages", "", "/v1/messages"},
		{"/v1", "//messages/", "messages", "", "/messages"},
		{"/v1beta/models", "/gemini-2.5:generateContent", "generate", "gemini-2.5", "/gemini-2.5:generateContent"},
		{"/v1beta", "/models/gemini-2.5:generateContent", "generate", "gemini-2.5", "/models/gemini-2.5:generateContent"},
		{"/model", "/claude/converse", "converse", "claude", "/claude/converse"},
		{"/model/claude", "/converse", "converse", "claude", "/converse"},
		{"/openai/deployments/gpt-4o", "/chat/completions", "chat", "gpt-4o", "/chat/completions"},
		{"/OpenAI/Deployments/gpt-4o", "/chat/%63ompletions", "chat", "gpt-4o", "/chat/completions"},
		{"/base", "/models", "", "", ""},
		{"", "/v1/messages", "messages", "", "/v1/messages"},
	} {
		r, ok := RecognizeBelow(c.base, c.path, "")
		if ok != (c.operation != "") || ok && (r.Operation != c.operation || r.Model != c.model || r.Path() != c.sent) {
			t.Errorf("%s below %s: got %+v, %v", c.path, c.base, r, ok)
			continue
		}
		if !ok {
			continue
		}
		q, err := r.Parse([]byte(`{"model":"anything","messages":[]}`))
		if want := cmp.Or(c.model, "anything"); err != nil || q.Model != want {
			t.Errorf("%s below %s: asks %+v, %v", c.path, c.base, q, err)
		}
		if path, _, _ := q.For("other"); c.model != "" && strings.Contains(c.path, c.model) && !strings.Contains(path, "other") {
			t.Errorf("%s below %s: for another model: %s", c.path, c.base, path)
		}
	}
}

// If a server could read a model's name as another name, that other name is sent.
func TestModelsThatAreReadInTwoWays(t *testing.T) {
	for path, want := range map[string]string{
		"/model/claude;a=1/converse": "claude", "/model/cl%2561ude/converse": "claude", "/v1beta/models/gemini%252D2:generateContent": "gemini-2",
		"/model/arn%3Aaws%3Abedrock%3Aeu%3A1%3Ainference-profile%2Fx/converse": "arn:aws:bedrock:eu:1:inference-profile/x",
	} {
		r, ok := recognizeAny(path, "")
		if again, _ := recognizeAny(r.Path(), ""); !ok || r.Model != want || again.Model != want {
			t.Errorf("%s: model %q, sent as %s", path, r.Model, r.Path())
		}
	}
}
