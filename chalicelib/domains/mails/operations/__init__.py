"""Operations on what reports of e-mails have led to."""
