"""Operations on waiting lists."""
