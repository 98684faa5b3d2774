package tokens

import (
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// A kind specifies how the tokens of a model are counted.
type kind struct {
	maker    maker
	encoding encoding
	weights  *weights
}

type maker uint8

const (
	unknownMaker maker = iota
	openAI
	anthropic
	google
)

// nameOf determines the kind from the model's name, or from the wire format if the name is unknown.
func nameOf(family llm.Family, model string) kind {
	name := model[strings.LastIndexByte(model, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	switch {
	case strings.Contains(name, "claude"):
		return claude(name)
	case strings.Contains(name, "gemini"), strings.Contains(name, "gemma"):
		return kind{google, none, &ofGemini}
	case starts(name, "gpt-4o", "gpt-4.", "gpt-5", "gpt-6", "gpt-oss", "chatgpt-", "o1", "o3", "o4", "openai.gpt"):
		return kind{openAI, o200k, &ofO200k}
	case starts(name, "gpt-4", "gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada-002"):
		return kind{openAI, cl100k, &ofCl100k}
	}
	switch family {
	case llm.Anthropic:
		return kind{anthropic, none, &ofClaude}
	case llm.Gemini:
		return kind{google, none, &ofGemini}
	}
	return kind{unknownMaker, none, &ofOthers}
}

func starts(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// claude distinguishes Claude's tokenizers. Opus 4.7 introduced a new one, and the fifth generation uses it too.
func claude(name string) kind {
	major, minor := version(name)
	if major > 4 || major == 4 && minor >= 7 {
		return kind{anthropic, none, &ofNewClaude}
	}
	return kind{anthropic, none, &ofClaude}
}

// version returns the first number of a name and the number directly after it, if they have one or two digits: 4 and 5
// for claude-sonnet-4-5-20250929.
func version(name string) (major, minor int) {
	numbers := [2]int{}
	found := 0
	for part := range strings.FieldsFuncSeq(name[strings.Index(name, "claude"):], func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' }) {
		n := small(part)
		if n < 0 && found > 0 {
			break
		}
		if n >= 0 {
			numbers[found] = n
			found++
		}
		if found == len(numbers) {
			break
		}
	}
	return numbers[0], numbers[1]
}

// small parses a number of one or two digits. It returns -1 for any other text.
func small(s string) int {
	n := 0
	for i := range len(s) {
		if kinds[s[i]] != digit {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	if len(s) == 0 || len(s) > 2 {
		return -1
	}
	return n
}
