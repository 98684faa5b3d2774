package connlimit

const notSentLowat = 25 // TCP_NOTSENT_LOWAT
