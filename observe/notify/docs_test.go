package notify

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestDocumentListsEveryKindAndMember(t *testing.T) {
	b, err := os.ReadFile("../../docs/how-to/notify.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds {
		if !strings.Contains(string(b), "\n| `"+string(k)+"` |") {
			t.Errorf("docs/how-to/notify.md has no row for %s", k)
		}
		if w := words[k]; w.title == "" || w.over == "" || w.action == "" {
			t.Errorf("%s has no words", k)
		}
	}
	m := example
	m.Limit = "all"
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	for name := range members {
		if !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("docs/how-to/notify.md does not name the member %s", name)
		}
	}
}
