package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed1158cd35/weir/internal/cli"
)

// completion writes what a shell completes, as a script for it.
func completion(w world) error {
	f := w.flags("completion", "bash | zsh | fish\n\nFor bash: weir completion bash > /etc/bash_completion.d/weir")
	if err := w.parse(f, 1); err != nil {
		return err
	}
	all := sheets(context.Background(), w.env)
	switch f.Arg(0) {
	case "bash":
		return bash(w.out, all)
	case "zsh":
		fmt.Fprint(w.out, "#compdef weir\nautoload -U +X bashcompinit && bashcompinit\n")
		return bash(w.out, all)
	case "fish":
		return fish(w.out, all)
	}
	f.Usage()
	return cli.ErrUsage
}

// follows are the words that may follow others, in their order.
func follows(all []sheet) (after []string, words map[string][]string) {
	words = make(map[string][]string)
	add := func(of, word string) {
		if _, known := words[of]; !known {
			after = append(after, of)
		}
		for _, w := range words[of] {
			if w == word {
				return
			}
		}
		words[of] = append(words[of], word)
	}
	for _, s := range all {
		name, sub, has := strings.Cut(s.words, " ")
		add("", name)
		if has {
			add(name, sub)
		}
		for _, f := range s.flags {
			add(s.words, "-"+f.Name)
		}
	}
	add("completion", "bash")
	add("completion", "zsh")
	add("completion", "fish")
	return after, words
}

// bash writes a script of bash. What is typed that is no flag is the way to where one is; files are completed where
// nothing else is known.
func bash(to io.Writer, all []sheet) error {
	after, words := follows(all)
	fmt.Fprint(to, `_weir() {
	local cur=${COMP_WORDS[COMP_CWORD]} at='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -* ]] || at+=" ${COMP_WORDS[i]}"
	done
	local words=''
	case "$at " in
`)
	for i := len(after) - 1; i >= 0; i-- { // the longer come first
		pattern := `" ` + after[i] + ` "*`
		if after[i] == "" {
			pattern = `" "`
		}
		fmt.Fprintf(to, "\t%s) words='%s' ;;\n", pattern, strings.Join(words[after[i]], " "))
	}
	_, err := fmt.Fprint(to, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _weir weir\n")
	return err
}

// fish writes a script of fish.
func fish(to io.Writer, all []sheet) error {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", " ").Replace(s) + "'"
	}
	first := make(map[string]bool)
	for _, s := range all {
		name, sub, has := strings.Cut(s.words, " ")
		if !first[name] {
			first[name] = true
			fmt.Fprintf(to, "complete -c weir -n __fish_use_subcommand -f -a %s -d %s\n", name, quote(s.about))
		}
		seen := "__fish_seen_subcommand_from " + name
		if has {
			fmt.Fprintf(to, "complete -c weir -n %s -f -a %s\n", quote(seen), sub)
			seen += "; and __fish_seen_subcommand_from " + sub
		}
		for _, f := range s.flags {
			value, about := takes(f)
			if value != "" {
				value = " -r"
			}
			fmt.Fprintf(to, "complete -c weir -n %s -o %s%s -d %s\n", quote(seen), f.Name, value, quote(about))
		}
	}
	_, err := fmt.Fprintln(to, "complete -c weir -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'")
	return err
}
