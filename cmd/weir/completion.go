package main

import (
	"io"

	"github.com/spf13/cobra"
)

// withoutBashCompletion defines the only function of the bash-completion package that cobra's script needs, for systems without
// that package.
const withoutBashCompletion = `declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
	cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
}
`

func newCompletion(w world) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write a completion script for bash, zsh or fish",
		Long: `Write a completion script for a shell: bash, zsh or fish. It completes commands and flags, and asks the running weir for names of
upstreams, limits and keys.`,
		Example: `  weir completion bash > /etc/bash_completion.d/weir
  weir completion zsh > "${fpath[1]}/_weir"
  weir completion fish > ~/.config/fish/completions/weir.fish`,
		ValidArgsFunction: cobra.FixedCompletions([]cobra.Completion{"bash", "zsh", "fish"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				if _, err := io.WriteString(w.out, withoutBashCompletion); err != nil {
					return err
				}
				return c.Root().GenBashCompletionV2(w.out, true)
			case "zsh":
				return c.Root().GenZshCompletion(w.out)
			case "fish":
				return c.Root().GenFishCompletion(w.out, true)
			}
			return usagef("unknown shell %q: want bash, zsh or fish", args[0])
		},
	}
}
