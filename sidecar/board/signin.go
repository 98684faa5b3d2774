package board

// signIn writes the form that asks for a token. It is served at the requested address, if that has no folders.
func (p *page) signIn(wrong string) {
	p.head("weir: sign in", false)
	p.Put(`<main class="sure">
<h1>weir: sign in</h1>`)
	if wrong != "" {
		p.Put(`<p class="trouble" role="alert">✖ %s</p>`, wrong)
	}
	p.Put(`<form method="post" action="login">
<p><label>Token (one of tokens with admin: true)<br><input name="token" type="password" required autocomplete="current-password" autofocus></label></p>
<p><button class="do">Sign in</button></p>
</form>
</main>
</body>
</html>`)
}
