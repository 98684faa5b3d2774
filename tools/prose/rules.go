package main

import "regexp"

// A rule finds one kind of oblique construction: words that hide who acts, or that rename a known thing.
type rule struct {
	name   string
	match  *regexp.Regexp
	before *regexp.Regexp // must not match the text before the finding, or nil
	after  *regexp.Regexp // must not match the text after it, or nil
	unless *regexp.Regexp // must not match the whole sentence, or nil
}

// newRule compiles a rule. An empty before, after or unless excludes nothing.
func newRule(name, match, before, after, unless string) rule {
	r := rule{name: name, match: regexp.MustCompile(`(?i)` + match)}
	if before != "" {
		r.before = regexp.MustCompile(`(?i)(?:` + before + `)$`)
	}
	if after != "" {
		r.after = regexp.MustCompile(`(?i)^(?:` + after + `)`)
	}
	if unless != "" {
		r.unless = regexp.MustCompile(`(?i)` + unless)
	}
	return r
}

const (
	question = `\?$`
	quoting  = `\b(RFCs?|spec|specification|standard|documentation|docs?|comment|section|POSIX|issue|manual)\b`
)

// rules are in the order in which they claim words: a word counts for the first rule that finds it.
var rules = []rule{
	// Clauses without a noun.
	newRule("clause as subject", `^(what|who|whoever|whatever|that which)\b`, "", ` (to|you|we|about)\b`, question),
	newRule("clause as object", `[,;:(] (what|who|whoever)\b`, "", ` (to|you|we|if|about|happens)\b`, ""),
	newRule("clause as object", `\b(and|but|or|for|of|than|until|as|by|from|with|into) (what|who)\b`, "",
		` (to|you|we|happens|happened|follows|kind|type)\b`, ""),
	newRule("what is", `\bwhat (is|are|was|were|has|had|goes|comes|came|stands|waits|runs|they|one|weir|that|may|can)\b`, "", "", question),
	newRule("whatever", `\bwhatever (is|was|it|they|the|a|has|comes|becomes|he|its|their|\w+s)\b`, "", "", ""),

	// Actors that do not exist.
	newRule("nobody", `\b(nobody|somebody|anybody|whoever|whom)\b`, "", "", ""),
	newRule("those who", `\bthose (who|that|which|with|whose|by|in|for)\b`, "", "", ""),
	newRule("he, she", `\b(he|she|him)\b`, "", `/`, ""),
	newRule("of which", `\bof which\b`, `(some|all|both|many|most|any|none|each|one|either) `, "", ""),
	newRule("others", `\bothers\b`, `(the|and|among|each|or) `, ` have\b`, ""),

	// Pronouns where a noun is needed.
	newRule("that of", `\b(those|(is|as|than|and|not|by|to|from|with|in|for|or|,) that) of\b`, "", "", ""),
	newRule("one that", `\bone (that|who|of which)\b`, `(the|only) `, "", ""),
	newRule("the one of", `\bthe one (who|of)\b`, "", "", ""),
	newRule("is none", `\b(is|are|has|have|was|were|had) none\b`, `there `, "", ""),
	newRule("none is", `^none (is|was|has|are)\b`, "", "", ""),
	newRule("nothing is", `\bnothing (is|was|of|here|waits|comes|has|stands|goes|knows)\b`, "", "", ""),
	newRule("all of it", `\b(what|none|all|much|as much|so much|more|most) of (it|them)\b`, "", "", ""),

	// Speech without a speaker, and texts that talk.
	newRule("is told", `\b(is|are|was|were|be|been) (told|heard|said|wanted)\b`, "", ` (to|explicitly)\b`, ""),
	newRule("tells of", `\btells? of\b`, "", "", ""),
	newRule("hears", `\b(hears?|heard)\b`, "", "", ""),
	newRule("says", `\bsays?\b`, "", "", quoting),

	// Verbs with a private meaning.
	newRule("stands", `\bstands?\b`, "", ` (for|out|alone|up)\b`, ""),
	newRule("goes on", `\b(goes|go|went|gone|going) on\b`, "", "", ""),
	newRule("comes again", `\bcomes? (again|by|late|of|in turn)\b`, "", "", ""),
	newRule("rests", `\b(rests|resting)\b`, "", "", ""),
	newRule("lacks", `\blacks (of|it|them|nothing|what|\w+ of)\b`, "", "", ""),
	newRule("owes", `\bow(es|ed)\b`, "", "", ""),
	newRule("knows of", `\bknows? (of|nothing|none)\b`, "", "", ""),

	// Old or legal turns of phrase.
	newRule("of its own", `\bof (its|one's|their|his|weir's|a caller's|ours|theirs|your) own\b`, "", "", ""),
	newRule("is to be", `\b(is|are|was|were) (not )?to be\b`, "", "", ""),
	newRule("but for", `(\b(all|none|nothing|any|other|same|is|are|anything)|,) but for\b`, "", "", ""),
	newRule("beside", `\b(beside|anew|next to nothing)\b`, "", "", ""),
	newRule("as it ships", `\bas (it|they) (ships?|came|was|were)\b`, "", "", ""),
	newRule("for so long", `\b(for|in|within|by|until|at|of|with|holds?|waits?) so (long|much|many|few|often)\b`, "", "", ""),
	newRule("so much as", `\bso (much|many|long|few) (as|of)\b`, "", "", ""),
	newRule("and so do", `\band so (is|are|do|does|did|was|were|has|have)\b`, "", "", ""),
	newRule("so it", `^so (it|do|does|is|are|they|can|may)\b`, "", "", question),
	newRule("has it done", `\b(has|have|had|having|lets?) (it|them|a call|the call|calls|callers|others|memory) (wait|stand|go|collected|sent|made|told|kept|done|written)\b`, "", "", ""),
	newRule("has it", `\b(has|have|had) (it|them)\b`, "", ` (to|set|been|in)\b`, ""),
	newRule("far as", `\bas (far|seldom|little) as\b`, "", "", ""),
	newRule("of theirs", `\bof (his|hers|theirs|ours|weir's)\b`, "", "", ""),
	newRule("not un-", `\bnot (un(known|heard|told|asked)\w*|nothing|none|nobody)\b`, "", "", ""),
}

// A finding is an oblique construction at s[from:to] of a sentence.
type finding struct {
	name     string
	from, to int
}

// findings returns the oblique constructions of a sentence. No word counts twice.
func findings(s string) (all []finding) {
	for _, r := range rules {
		if r.unless != nil && r.unless.MatchString(s) {
			continue
		}
		for _, m := range r.match.FindAllStringIndex(s, -1) {
			if r.before != nil && r.before.MatchString(s[:m[0]]) || r.after != nil && r.after.MatchString(s[m[1]:]) {
				continue
			}
			f := finding{r.name, m[0], m[1]}
			if !overlaps(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

func overlaps(all []finding, f finding) bool {
	for _, g := range all {
		if f.from < g.to && g.from < f.to {
			return true
		}
	}
	return false
}
