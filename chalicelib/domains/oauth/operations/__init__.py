"""Operations of OAuth."""
