package price

import (
	"iter"
	"slices"
	"strings"
)

// Find returns the row for a model under any of its providers' names. It removes prefixes and suffixes step by step: the
// path or ARN, Bedrock's region and vendor, Bedrock's version, and the date. The first of these names with an exact row
// decides. For example, gpt-4o-2024-08-06 finds gpt-4o if it has no row itself. gpt-4o-mini never finds gpt-4o. If there
// is no exact row, Find uses the longest pattern that matches the first matching name.
func (t Table) Find(model string) (Row, bool) {
	for name := range namesOf(model) {
		if row, ok := t.exact[name]; ok {
			return t.with(row), true
		}
	}
	if len(t.patterns) == 0 {
		return Row{}, false
	}
	for name := range namesOf(model) {
		for _, row := range t.patterns {
			if row.Model != anyModel && strings.HasPrefix(name, row.Model[:len(row.Model)-1]) {
				return t.with(row), true
			}
		}
	}
	last := t.patterns[len(t.patterns)-1] // the shortest pattern
	return t.with(last), last.Model == anyModel
}

// anyModel is the pattern of the default price, for models without another row.
const anyModel = "*"

// namesOf iterates over the names of a model, starting with the longest.
func namesOf(model string) iter.Seq[string] {
	return func(yield func(string) bool) {
		name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
		if !yield(name) {
			return
		}
		for _, shorter := range [...]func(string) string{withoutRegion, withoutMaker, withoutRevision, withoutDate} {
			if next := shorter(name); next != name {
				name = next
				if !yield(name) {
					return
				}
			}
		}
	}
}

var (
	regions = []string{"us", "eu", "apac", "global", "jp", "au", "ca", "us-gov"}
	makers  = []string{"anthropic", "amazon", "meta", "mistral", "cohere", "ai21", "deepseek", "openai", "qwen", "writer"}
)

func withoutRegion(name string) string { return without(name, regions) }
func withoutMaker(name string) string  { return without(name, makers) }

// without removes the part before the first full stop if it is one of words.
func without(name string, words []string) string {
	word, rest, ok := strings.Cut(name, ".")
	if ok && rest != "" && slices.Contains(words, word) {
		return rest
	}
	return name
}

// withoutRevision removes "-v1:0" and "-v2:0:200k", which Bedrock appends.
func withoutRevision(name string) string {
	front, back, ok := strings.Cut(name, ":")
	if !ok {
		back = "0" // newer models have only "-v1"
	}
	cut := strings.LastIndex(front, "-v")
	if cut <= 0 || !digits(front[cut+2:]) || back == "" || back[0] < '0' || back[0] > '9' {
		return name
	}
	return front[:cut]
}

// withoutDate removes "-20240307", "@20240307", "-2024-08-06", "-latest" and "@default".
func withoutDate(name string) string {
	for _, word := range []string{"-latest", "@default"} {
		if rest, ok := strings.CutSuffix(name, word); ok && rest != "" {
			return rest
		}
	}
	for _, shape := range []string{"-dddddddd", "@dddddddd", "-dddd-dd-dd"} {
		cut := len(name) - len(shape)
		if cut > 0 && has(name[cut:], shape) {
			return name[:cut]
		}
	}
	return name
}

// has reports whether s matches shape, where d stands for a digit.
func has(s, shape string) bool {
	for i := range len(shape) {
		if shape[i] != 'd' && s[i] != shape[i] || shape[i] == 'd' && !digits(s[i:i+1]) {
			return false
		}
	}
	return s[1] == '1' || s[1] == '2' // a year
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
