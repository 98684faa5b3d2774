package tokens

// Texts of each kind that occurs in prompts, written for these tests.
const (
	english  = `A small shop by the harbour sells rope, lamps and coffee to whoever comes ashore before nine. Its owner keeps two ledgers: one for the customers who pay at once, and a thicker one for those who promise to. Last winter, when the ferry stopped running for eleven days, nearly everybody in the village moved from the first book to the second, and nobody thought it strange. "You cannot eat a debt," she said to the teacher, "but you cannot burn a neighbour for warmth either." By March most pages were crossed out again. What remained was a question about interest, which the council discussed at length without deciding anything, because the harbour master had lent more than the bank and asked for less. Please summarise the story in three sentences, name the people in it, and say whether the council should act. Answer politely, and mention the deadline of 15 April 2026 if it seems relevant to you. `
	german   = `Der Wetterdienst warnt seit gestern Abend vor überfrierender Nässe in den höheren Lagen, während im Flachland weiterhin Regen fällt. Wer mit dem Fahrrad zur Arbeit fährt, sollte früher aufbrechen und die Brücke über den Mühlbach meiden, deren Geländer nach dem Unfall im November noch nicht erneuert wurde. Die Gemeindeverwaltung verweist auf die Haushaltslage; die Bürgerinitiative hält das für eine Ausrede und hat Unterschriften gesammelt. Bitte fassen Sie die Meldung in zwei Sätzen zusammen, nennen Sie die wichtigsten Zahlen und schlagen Sie eine Überschrift vor, die höchstens fünfzig Zeichen lang ist. `
	japanese = `港のそばにある小さな店では、朝九時までに上陸した人に縄やランプやコーヒーを売っている。店主は帳簿を二冊つけていて、一冊はすぐに払う客のため、もう一冊は後で払うと約束した客のためである。昨年の冬、連絡船が十一日も止まったとき、村のほとんどの人が一冊目から二冊目に移ったが、だれも不思議に思わなかった。この話を三つの文に要約し、登場人物の名前を挙げ、役場が何をすべきか丁寧に答えてください。締め切りは四月十五日です。 `
	chinese  = `港口旁边有一家小店，早上九点以前向上岸的人出售绳索、灯具和咖啡。店主有两本账簿：一本记当场付款的客人，另一本更厚，记答应以后付款的客人。去年冬天渡轮停航十一天，村里几乎所有人都从第一本转到了第二本，谁也没有觉得奇怪。请用三句话概括这个故事，列出其中的人物，并说明村委会应该怎么做。截止日期是四月十五日，请礼貌地回答。 `
	code     = `func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	user, err := s.users.Find(ctx, r.Header.Get("X-User-Id"))
	if errors.Is(err, ErrNotFound) {
		http.Error(w, "no such user", http.StatusNotFound)
		return
	}
	for i, item := range user.Items[:min(len(user.Items), 20)] {
		fmt.Fprintf(w, "%3d  %-20s %8.2f\n", i+1, item.Name, float64(item.Cents)/100)
	}
}

`
	jsonText = `{"order":{"id":"7f3c-2291","customer":{"name":"Erika Muster","tier":"gold","since":"2019-04-02"},"lines":[{"sku":"ROPE-12MM","qty":40,"price":1.75},{"sku":"LAMP-LED-9W","qty":3,"price":12.9,"options":{"colour":"warm","dimmable":true}}],"total":108.7,"notes":null,"shipped":false}}
`
)
