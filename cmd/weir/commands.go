package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

// A command is what may follow weir.
type command struct {
	name string
	also []string    // other names
	says [][2]string // what is typed after the name, and what that does; none for a command that people are not told of
	subs []string    // the words of which one follows; none for a command that has flags itself
	run  func(ctx context.Context, w world, name string) error
}

// commands are all there are. Help, completions and the manual are made of them.
func commands() []command {
	return []command{
		{"serve", nil, [][2]string{{"-config weir.yaml", "run the sidecar"}}, nil, func(ctx context.Context, w world, _ string) error { return runServe(ctx, w) }},
		{"check", nil, [][2]string{
			{"weir.yaml", "say everything that is wrong with a file"},
			{"-connect weir.yaml", "and try the store, the upstreams and all else that it names"},
		}, nil, func(ctx context.Context, w world, _ string) error { return check(ctx, w) }},
		{"status", nil, [][2]string{{"", "what a running weir is doing"}}, nil, func(ctx context.Context, w world, _ string) error { return showStatus(ctx, w) }},
		{"top", nil, [][2]string{{"", "the same live in a terminal, the worst first"}}, nil, func(ctx context.Context, w world, _ string) error { return runTop(ctx, w) }},
		{"reload", nil, [][2]string{{"", "have a running weir read its file again"}}, nil, func(ctx context.Context, w world, _ string) error { return runReload(ctx, w) }},
		{"why", nil, [][2]string{{"ID", "what became of a call, and what to change"}}, nil, func(ctx context.Context, w world, _ string) error { return explain(ctx, w) }},
		{"trace", nil, [][2]string{{"ID", "where the time of a trace went, from X-Ray"}}, nil, func(ctx context.Context, w world, _ string) error { return showTrace(ctx, w) }},
		{"pause", nil, [][2]string{{"UPSTREAM", "stop its calls, or those of a limit, key, pool or operation"}}, nil, runPause},
		{"resume", nil, [][2]string{{"UPSTREAM", "lift its pauses, whoever asked for them"}}, nil, runPause},
		{"dead", nil, [][2]string{{"list | show | redrive | drop", "what could not be delivered, and what becomes of it"}}, []string{"list", "show", "redrive", "drop"},
			func(ctx context.Context, w world, _ string) error { return runDead(ctx, w) }},
		{"store", nil, [][2]string{{"init", "make the store ready that a fleet shares"}}, []string{"init"}, func(ctx context.Context, w world, _ string) error { return runStore(ctx, w) }},
		{"export", nil, [][2]string{{"prometheus-rules", "alerts, dashboards and alarms, as files for others; weir export -h names all"}}, exportNames(),
			func(ctx context.Context, w world, _ string) error { return export(ctx, w) }},
		{"learn", nil, [][2]string{{"LOG...", "limits by what happened, as a diff of weir.yaml; changes nothing"}}, nil, func(ctx context.Context, w world, _ string) error { return runLearn(ctx, w) }},
		{"static", nil, [][2]string{{`test "question"`, "which static answer a question finds, and why"}}, []string{"test"}, func(_ context.Context, w world, _ string) error { return runStatic(w) }},
		{"completion", nil, [][2]string{{"bash | zsh | fish", "what a shell completes, as a script for it"}}, nil, func(_ context.Context, w world, _ string) error { return completion(w) }},
		{"man", nil, [][2]string{{"", "this manual, for man"}}, nil, func(_ context.Context, w world, _ string) error { return manual(w) }},
		{"version", []string{"-version", "--version"}, [][2]string{{"", "which weir this is"}}, nil, version},

		{"help", []string{"-h", "-help", "--help"}, nil, nil, help},
		{"demo", nil, nil, nil, func(_ context.Context, w world, name string) error { return moved(w, name, "weir-demo") }},
		{"chat-sim", nil, nil, nil, func(_ context.Context, w world, name string) error { return moved(w, name, "weir-demo chat") }},
	}
}

func exportNames() (all []string) {
	for _, e := range exports {
		all = append(all, e.name)
	}
	return all
}

// usage is what weir says of itself.
func usage() string {
	var b strings.Builder
	b.WriteString("weir keeps programs inside the limits of the APIs they call.\n\n")
	for _, c := range commands() {
		for _, says := range c.says {
			fmt.Fprintf(&b, "  weir %-24s  %s\n", strings.TrimSpace(c.name+" "+says[0]), says[1])
		}
	}
	b.WriteString("\nweir COMMAND -h tells more.\n")
	return b.String()
}

// A sheet is what may be typed after some words.
type sheet struct {
	words string // those: "dead list"
	about string
	flags []*flag.Flag
}

// sheets are those of all commands that people are told of, as these declare their flags themselves.
func sheets(ctx context.Context, env func(string) (string, bool)) (all []sheet) {
	for _, c := range commands() {
		if c.says == nil {
			continue
		}
		subs := c.subs
		if subs == nil {
			subs = []string{""}
		}
		for _, sub := range subs {
			s := sheet{words: strings.TrimSpace(c.name + " " + sub), about: c.says[0][1]}
			w := world{out: &strings.Builder{}, err: &strings.Builder{}, env: env, seen: func(f *flag.FlagSet) {
				f.VisitAll(func(one *flag.Flag) { s.flags = append(s.flags, one) })
			}}
			if sub != "" {
				w.args = []string{sub}
			}
			_ = c.run(ctx, w, c.name)
			all = append(all, s)
		}
	}
	return all
}

// takes is what a flag takes, "" for none, and what it is about.
func takes(f *flag.Flag) (value, about string) {
	value, about = flag.UnquoteUsage(f)
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
		about += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	return value, about
}
