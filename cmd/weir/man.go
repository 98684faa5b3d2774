package main

import (
	"context"
	"fmt"
	"strings"
)

// manual writes weir(1), in the macros of man.
func manual(w world) error {
	f := w.flags("man", "\n\nweir man > /usr/share/man/man1/weir.1")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(".TH WEIR 1 \"\" weir \"weir\"\n.SH NAME\nweir \\- keeps programs inside the limits of the APIs they call\n.SH SYNOPSIS\n.B weir\n.I COMMAND\n[flags] [arguments]\n")
	b.WriteString(".SH DESCRIPTION\nweir stands between programs and the APIs that they call: it keeps them inside every limit, repeats what is worth it,\nand stops calling what is down.\n.SH COMMANDS\n")
	for _, c := range commands() {
		for _, says := range c.says {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace("weir "+c.name+" "+says[0])), roff(says[1]))
		}
	}
	b.WriteString(".SH FLAGS\n")
	for _, s := range sheets(context.Background(), w.env) {
		if len(s.flags) == 0 {
			continue
		}
		fmt.Fprintf(&b, ".SS %s\n", roff("weir "+s.words))
		for _, f := range s.flags {
			value, about := takes(f)
			fmt.Fprintf(&b, ".TP\n.BR \\-%s \" %s\"\n%s\n", roff(f.Name), roff(value), roff(about))
		}
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n0 if all is well, 1 if it is not, 2 if weir was called wrongly.\n.SH ENVIRONMENT\n.TP\n.B %s\nthe token to show to the admin listener of a running weir\n", tokenVariable)
	b.WriteString(".SH FILES\n.TP\n.I /etc/weir/weir.yaml\nthe configuration of the service, with\n.I /etc/weir/environment\nfor secrets\n")
	_, err := w.out.Write([]byte(b.String()))
	return err
}

// roff is a text as it is, for man.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
